"""``profile.*``: the profiles there are, and their whole content as data.

What comes in: names, exported data. What goes out: the same. What must not be here: paths on a client's side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.dispatch import translate
from memd.dispatch.table import Method
from memd.dispatch.writes import fingerprint
from memd.errors import InvalidParams, NoSuchProfile
from memd.profile.importing import KINDS
from memd.profile.values import TARGETS
from memd.protocol import params as p, results, types

if TYPE_CHECKING:
    from memd.dispatch.context import Context
    from memd.dispatch.ports import Profile
    from memd.profile.values import Target

EXPORT_VERSION = 1
PAGE = 1000


def list_profiles(context: Context, _params: p.ProfileList) -> results.ProfileListed:
    """Every profile."""
    profiles = context.services.profiles
    return results.ProfileListed(profiles=[translate.profile_info(profiles[name]) for name in sorted(profiles)])


async def export(context: Context, _params: p.ProfileExport) -> results.ProfileExported:
    """The connection's profile as data: what it holds and how that came."""
    profile = context.profile
    await profile.look()
    revisions = await _all_revisions(profile)
    return results.ProfileExported(
        version=EXPORT_VERSION,
        profile=profile.name,
        entries=types.PerStore(
            memory=[translate.entry(item) for item in profile.state("memory").document.entries],
            user=[translate.entry(item) for item in profile.state("user").document.entries],
        ),
        revisions=revisions,
    )


async def create(context: Context, params: p.ProfileCreate) -> results.Empty:
    """Add a profile."""
    if params.name in context.services.profiles:
        msg = f"name: there is a profile {params.name!r} already"
        raise InvalidParams(msg, field="name")
    await context.services.control.create_profile(params.name, params.dir)
    return results.Empty()


async def import_profile(context: Context, params: p.ProfileImport) -> results.ProfileImported:
    """Take over exported entries, or make entries of Markdown; one revision a store."""
    profiles = context.services.profiles
    if params.name not in profiles:
        msg = f"no profile {params.name!r}; create it first, or name one of: {', '.join(sorted(profiles))}"
        raise NoSuchProfile(msg, profiles=sorted(profiles))
    if params.data.get("version") != EXPORT_VERSION:
        msg = f"data: version {EXPORT_VERSION} of the export expected, got {params.data.get('version')!r}"
        raise InvalidParams(msg, field="data.version")
    profile, writing = profiles[params.name], context.writing(params)
    caller, known = replace(writing.caller, origin="import"), _known(params)
    heads = None
    if params.preview:
        await profile.look()
        done = profile.preview_import(params.data, caller, if_revisions=known)
        heads = translate.some_stores({target: profile.state(target).revision for target in done.usage})
    else:
        done = await profile.import_entries(
            params.data,
            caller,
            request_id=params.request_id,
            fingerprint=fingerprint("profile.import", params),
            if_revisions=known,
        )
    return results.ProfileImported(
        revisions=list(done.revisions),
        changes=translate.target_changes(done.changes, profile.mask),
        usage=translate.some_stores({target: translate.usage(item) for target, item in done.usage.items()}),
        notices=[translate.notice(item) for item in (*done.notices, *writing.notices)],
        replayed=done.replayed,
        heads=heads,
    )


def _known(params: p.ProfileImport) -> dict[Target, int]:
    """The revisions that the caller has seen, by store.

    Raises:
        InvalidParams: ``if_revision`` where it is not said of which store.
    """
    given = params.if_revisions
    known: dict[Target, int | None] = {"memory": given.memory, "user": given.user} if given else {}
    if params.if_revision is not None:
        kinds = [params.data[kind] for kind in KINDS if isinstance(params.data.get(kind), dict | list)]
        named = [store for kind in kinds for store in kind]
        if given is not None or len(named) != 1 or named[0] not in TARGETS:
            msg = "if_revision: it is the revision of one store, and data does not name one; use if_revisions: {memory, user}"
            raise InvalidParams(msg, field="if_revision")
        known = {named[0]: params.if_revision}
    return {target: revision for target, revision in known.items() if revision is not None}


async def _all_revisions(profile: Profile) -> list[types.Revision]:
    found: list[types.Revision] = []
    before: int | None = None
    while True:
        rows, before = await profile.list_revisions(limit=PAGE, before=before)
        found.extend(translate.revision(row, profile.mask) for row in rows)
        if before is None:
            return found


METHODS = (
    Method("profile.list", p.ProfileList, results.ProfileListed, "read", list_profiles),
    Method("profile.export", p.ProfileExport, results.ProfileExported, "full", export, "task"),
    Method("profile.create", p.ProfileCreate, results.Empty, "operator", create, "task", mutation=True),
    Method(
        "profile.import", p.ProfileImport, results.ProfileImported, "operator", import_profile, "task", mutation=True
    ),
)
