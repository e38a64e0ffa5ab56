"""The settings: the one place to import them from, merged and checked.

What comes in: a path, an environment. What goes out: ``Settings``, or a ``SettingsError`` that says path, line and key.
What must not be here: what a setting means to the layer that uses it; which keys there are (``memd.settings``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from memd.errors import SettingsError
from memd.paths import agent_sockets, config_file, home_dir, operator_sockets, profile_dir, state_dir
from memd.settings import (
    Access,
    Approval,
    Daemon,
    Flush,
    History,
    Limits,
    ProfileSections,
    ProfileSettings,
    ProfileTable,
    Review,
    Scan,
    Section,
    Sections,
    Sessions,
    Settings,
    Stores,
    Turn,
    Wire,
)
from memd.settings_file import SettingsFile, read_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "Access",
    "Approval",
    "Daemon",
    "Effective",
    "Flush",
    "History",
    "Limits",
    "ProfileSettings",
    "Review",
    "Scan",
    "Sessions",
    "Settings",
    "Stores",
    "Turn",
    "Wire",
    "agent_sockets",
    "config_file",
    "effective",
    "home_dir",
    "load",
    "operator_sockets",
    "profile_dir",
    "profile_name_problem",
    "read_private",
    "state_dir",
    "weakened",
]

_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_STRICTNESS = {"apply": 0, "withhold": 1, "stage": 1, "refuse": 2}
_SECTIONS = (
    *("daemon", "wire", "stores", "limits", "turn", "access", "sessions"),
    *("review", "flush", "approval", "scan", "history"),
)
_POLICIES = frozenset(key for key, value in msgspec.to_builtins(Approval()).items() if value in _STRICTNESS)
_PRIVATE_FILES = ("review.prompt_file", "review.openai.api_key_file", "review.anthropic.api_key_file")


class Effective(NamedTuple):
    """One line of ``memd config show``. ``source`` is ``default`` or ``path:line``."""

    key: str
    value: Any
    source: str


def load(path: str | None, env: Mapping[str, str]) -> Settings:
    """Read the settings file and merge it over the defaults.

    Args:
        path: A file named by hand, which must exist; None for the one in ``$XDG_CONFIG_HOME``, which need not.
        env: The environment.

    Raises:
        SettingsError: The file cannot be used. Nothing was changed; a running daemon keeps what it has.
    """
    file = path or config_file(env)
    try:
        text = read_private(file)
    except FileNotFoundError:
        if path is not None:
            msg = f"{file}: no such file"
            raise SettingsError(msg) from None
        return _build(SettingsFile(file, ""), None, env)
    source = SettingsFile(file, text)
    return _build(source, file, env)


def effective(settings: Settings) -> list[Effective]:
    """Every value that is in force, in the order of the documentation, and where it came from.

    Of a profile only its directory and what it overrides are listed; the rest is what the general sections say.
    """
    rows = []
    for section in _SECTIONS:
        for key, value in _leaves(getattr(settings, section), f"{section}."):
            rows.append(Effective(key, value, settings.sources.get(key, "default")))
    for name, profile in settings.profiles.items():
        for key, value in _leaves(profile):
            dotted = f"profiles.{name}.{key}"
            if key == "dir" or dotted in settings.sources:
                rows.append(Effective(dotted, value, settings.sources.get(dotted, "default")))
    return rows


def weakened(settings: Settings) -> list[str]:
    """Keys that let more through than the defaults do: ``approval`` values, and any rule switched off or only warning.

    Whoever starts or reloads with these tells the user (``config.changed``).
    """
    strict = dict(_leaves(Approval()))
    found = []
    for prefix, sections in _everywhere(settings):
        general = dict(_leaves(settings.approval)) if prefix else strict
        for key, value in _leaves(sections.approval):
            if key in _POLICIES and value != general[key] and _STRICTNESS[value] < _STRICTNESS[strict[key]]:
                found.append(f"{prefix}approval.{key}")
        for key in ("off", "warn"):
            ids = getattr(sections.scan, key)
            if ids and not (prefix and ids == getattr(settings.scan, key)):
                found.append(f"{prefix}scan.{key}")
    return found


def profile_name_problem(name: str) -> str | None:
    """Why this cannot be a profile's name, or None. Names become directory names, hence the small alphabet."""
    if _PROFILE_NAME.fullmatch(name):
        return None
    return "a profile's name has 1 to 64 letters, digits, '.', '_' or '-', and starts with a letter or digit"


def _build(source: SettingsFile, path: str | None, env: Mapping[str, str]) -> Settings:
    home = home_dir(env)
    tables = source.tree.pop("profiles", {"default": {}})
    sections = source.convert(source.tree, Sections, "")
    if not isinstance(tables, dict) or not tables:
        raise source.error(key="profiles", what="expected at least one table [profiles.NAME]")
    profiles = {name: _profile(source, sections, name, table, env) for name, table in tables.items()}
    roots = tuple(source.absolute("daemon.symlink_roots", root, home) for root in sections.daemon.symlink_roots)
    general = {name: getattr(sections, name) for name in Sections.__struct_fields__}
    general["daemon"] = msgspec.structs.replace(sections.daemon, symlink_roots=roots)
    settings = Settings(**general, profiles=profiles, path=path, sources=source.places())
    _check_rules(source, settings)
    _check_private_files(source, settings, home)
    return settings


def _profile(
    source: SettingsFile, sections: Sections, name: str, table: Any, env: Mapping[str, str]
) -> ProfileSettings:
    prefix = f"profiles.{name}"
    problem = profile_name_problem(name)
    if problem:
        raise source.error(key=prefix, what=problem)
    own = source.convert(table, ProfileTable, prefix)
    base = {field: msgspec.to_builtins(getattr(sections, field)) for field in ProfileSections.__struct_fields__}
    merged = source.convert(_merged(base, {**table, "dir": own.dir}), ProfileTable, prefix)
    folder = source.absolute(f"{prefix}.dir", own.dir, home_dir(env)) if own.dir else profile_dir(env, name)
    return ProfileSettings(
        **{field: getattr(merged, field) for field in ProfileSections.__struct_fields__}, name=name, dir=folder
    )


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``base`` with the keys of ``over`` put in, table by table. Lists are replaced whole."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(value, dict) and isinstance(old, dict) else value
    return result


def _check_rules(source: SettingsFile, settings: Settings) -> None:
    """Refuse the ids of rules that there are none of: whoever wrote one believes that something is switched off."""
    for prefix, sections in _everywhere(settings):
        for key, ids in _leaves(sections.scan, "scan."):
            if ids and prefix + key in settings.sources:
                from memd.scan import unknown_rules  # noqa: PLC0415 - the rules take their time, and hardly anybody names one

                unknown = unknown_rules(ids)
                if unknown:
                    raise source.error(key=prefix + key, what=f"there is no rule {', '.join(map(repr, unknown))}")


def _check_private_files(source: SettingsFile, settings: Settings, home: str) -> None:
    """Refuse prompt and key files that others may write; one that is missing is the business of whoever needs it."""
    for prefix, sections in _everywhere(settings):
        for key, value in _leaves(sections.review, "review."):
            if value and key in _PRIVATE_FILES and prefix + key in settings.sources:
                try:
                    read_private(source.absolute(prefix + key, value, home))
                except FileNotFoundError:
                    continue
                except SettingsError as error:
                    raise source.error(key=prefix + key, what=str(error)) from None


def _everywhere(settings: Settings) -> Iterator[tuple[str, ProfileSections]]:
    """The general sections, then each profile's, with the prefix of their keys."""
    yield "", settings
    for name, profile in settings.profiles.items():
        yield f"profiles.{name}.", profile


def _leaves(section: Section, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value below a section, with its dotted key as in the file."""
    for field in msgspec.structs.fields(section):
        value = getattr(section, field.name)
        if isinstance(value, Section):
            yield from _leaves(value, f"{prefix}{field.encode_name}.")
        else:
            yield prefix + field.encode_name, value
