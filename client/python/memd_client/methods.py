"""The methods of the protocol, typed.

What comes in: arguments. What goes out: records of ``memd_client.types``. What must not be here: connections. Names
follow one rule, an underscore for the dot, so that the protocol's documentation is this class's documentation.
"""

from __future__ import annotations

from memd_client import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal, TypedDict, Unpack

    from memd_client.jobs import Claimed, CompactionEnded, CompactionReceipt, Job, JobList, Renewed, Submission
    from memd_client.proposals import Checked, Proposal, ProposalList
    from memd_client.redacted import Redacted
    from memd_client.tool import ToolAnswer
    from memd_client.types import Target

    Style = Literal["openai", "anthropic", "mcp"]

    class MutationOptions(TypedDict, total=False):
        """What every change to memory takes; ``request_id`` is made where none is given."""

        session: str | None
        turn: str | None
        reason: str | None
        origin: str | None
        request_id: str | None
        if_revision: int | None

    class Place(MutationOptions, total=False):
        """Which entry is meant: by ``id`` or by ``old_text``, and what its text was."""

        id: str | None
        old_text: str | None
        if_hash: str | None

    class EditOptions(MutationOptions, total=False):
        """Which entry is meant where ``old_text`` alone does not say."""

        id: str | None
        if_hash: str | None

    class Selector(MutationOptions, total=False):
        """What to undo or redo: one revision, a job, a session, or the ``last`` few."""

        revision: int | None
        job: str | None
        last: int | None
        preview: bool | None

    class Revisions(TypedDict, total=False):
        """Which revisions to list: those that fit all that is given."""

        target: Target | None
        session: str | None
        job: str | None
        entry: str | None
        origin: str | None
        limit: int | None
        before: int | None

    class RestoreOptions(MutationOptions, total=False):
        """Whether only to say what would be done."""

        preview: bool | None


class Methods:
    """One method for each of the protocol's. ``self.timeout`` bounds each call, waiting not included."""

    timeout: float | None

    def request(self, method: str, params: dict[str, Any], *, timeout: float | None = None) -> Any:
        """Make the call; parameters that are None are left out."""
        raise NotImplementedError

    # -- memory ------------------------------------------------------------------------------------------------------

    def memory_add(self, target: Target, content: str, **options: Unpack[MutationOptions]) -> types.Mutation:
        """Add an entry. One that is there already is success, with ``changed`` false."""
        return types.Mutation(self.request("memory.add", {"target": target, "content": content, **options}))

    def memory_replace(self, target: Target, content: str, **place: Unpack[Place]) -> types.Mutation:
        """Replace a whole entry."""
        return types.Mutation(self.request("memory.replace", {"target": target, "content": content, **place}))

    def memory_edit(
        self, target: Target, old_text: str, new_text: str, **options: Unpack[EditOptions]
    ) -> types.Mutation:
        """Replace the matched part of an entry; an empty ``new_text`` deletes it."""
        params = {"target": target, "old_text": old_text, "new_text": new_text, **options}
        return types.Mutation(self.request("memory.edit", params))

    def memory_remove(self, target: Target, **place: Unpack[Place]) -> types.Mutation:
        """Remove an entry."""
        return types.Mutation(self.request("memory.remove", {"target": target, **place}))

    def memory_apply(
        self, target: Target, operations: Sequence[Mapping[str, Any]], **options: Unpack[MutationOptions]
    ) -> types.ApplyResult:
        """Apply several operations on one store, all or none; the limit is checked on the final state only."""
        params = {"target": target, "operations": [dict(op) for op in operations], **options}
        return types.ApplyResult(self.request("memory.apply", params))

    def memory_wipe(self, target: Target, confirm: str, **options: Unpack[MutationOptions]) -> types.Mutation:
        """Remove everything; ``confirm`` is the profile's name. For operators."""
        return types.Mutation(self.request("memory.wipe", {"target": target, "confirm": confirm, **options}))

    def memory_read(self, target: Target | None = None) -> types.ReadResult:
        """Read the live state of both stores, or of one."""
        return types.ReadResult(self.request("memory.read", {"target": target}))

    def memory_tool(
        self,
        arguments: Mapping[str, Any],
        *,
        style: Style = "openai",
        session: str | None = None,
        turn: str | None = None,
        origin: Literal["agent", "tool"] | None = None,
        request_id: str | None = None,
    ) -> ToolAnswer:
        """Carry out a model's tool call, unchecked. Refusals are answers for the model."""
        from memd_client.tool import ToolAnswer  # noqa: PLC0415 - only agents pay for it

        said = {"arguments": dict(arguments), "style": style, "session": session, "turn": turn, "origin": origin}
        return ToolAnswer(self.request("memory.tool", {**said, "request_id": request_id}))

    def memory_tool_schema(self, style: Style = "openai") -> dict[str, Any]:
        """Return the tool's definition, to be given to a model."""
        return dict(self.request("memory.tool_schema", {"style": style}))

    def memory_explain(self, text: str) -> types.Explained:
        """Tell what became of a text: stored, refused, withheld, removed, and when."""
        return types.Explained(self.request("memory.explain", {"text": text}))

    # -- sessions and turns --------------------------------------------------------------------------------------------

    def session_open(
        self,
        session: str | None = None,
        *,
        key: str | None = None,
        parent: str | None = None,
        endpoint: str | None = None,
        style: Style = "openai",
    ) -> types.SessionOpened:
        """Open a session, or resume the one with this id or key. Its snapshot is frozen, over restarts too."""
        said = {"session": session, "key": key, "parent": parent, "endpoint": endpoint, "style": style}
        return types.SessionOpened(self.request("session.open", said))

    def session_snapshot(self, session: str) -> types.SessionSnapshot:
        """Return the frozen snapshot, and what changed since."""
        return types.SessionSnapshot(self.request("session.snapshot", {"session": session}))

    def session_refresh(self, session: str) -> types.Refreshed:
        """Take a new snapshot at a boundary; the same id means leave the prompt alone."""
        return types.Refreshed(self.request("session.refresh", {"session": session}))

    def session_close(
        self,
        session: str,
        reason: Literal["end", "reset", "switch"] = "end",
        messages: Sequence[Mapping[str, Any]] | None = None,
    ) -> types.SessionClosed:
        """End a session and free its key."""
        said = {"session": session, "reason": reason, "messages": _plain(messages)}
        return types.SessionClosed(self.request("session.close", said))

    def turn_begin(self, session: str, turn: str, *, user: bool) -> types.TurnBegun:
        """Begin a turn; ``user`` says whether a person asked for it."""
        return types.TurnBegun(self.request("turn.begin", {"session": session, "turn": turn, "user": user}))

    def turn_end(
        self,
        session: str,
        turn: str,
        status: Literal["completed", "interrupted"] = "completed",
        *,
        messages: Sequence[Mapping[str, Any]] = (),
        first: int | None = None,
    ) -> types.TurnEnded:
        """End a turn, with its messages."""
        said = {"session": session, "turn": turn, "status": status, "messages": _plain(messages), "first": first}
        return types.TurnEnded(self.request("turn.end", said))

    def compaction_begin(
        self,
        session: str,
        epoch: str | int,
        messages: Sequence[Mapping[str, Any]] = (),
        *,
        wait_ms: int = 0,
        mode: Literal["daemon", "inline"] = "daemon",
    ) -> CompactionReceipt:
        """Hand over the messages that are about to go, and go on with the receipt."""
        from memd_client.jobs import CompactionReceipt  # noqa: PLC0415 - hardly ever needed; a one-shot client starts faster

        said = {"session": session, "epoch": epoch, "messages": _plain(messages), "wait_ms": wait_ms, "mode": mode}
        return CompactionReceipt(self._waiting("compaction.begin", said, wait_ms))

    def compaction_end(
        self, session: str, epoch: str | int, status: Literal["completed", "failed"] = "completed"
    ) -> CompactionEnded:
        """Say that the compaction is over; its snapshot is the one from here on."""
        from memd_client.jobs import CompactionEnded  # noqa: PLC0415 - as above

        return CompactionEnded(self.request("compaction.end", {"session": session, "epoch": epoch, "status": status}))

    # -- reviews and flushes -------------------------------------------------------------------------------------------

    def jobs_list(self, session: str | None = None, *, limit: int | None = None) -> JobList:
        """Return the newest reviews and flushes."""
        from memd_client.jobs import JobList  # noqa: PLC0415 - as above

        return JobList(self.request("jobs.list", {"session": session, "limit": limit}))

    def jobs_show(self, job: str) -> Job:
        """Return one of them."""
        return self._job("jobs.show", {"job": job})

    def jobs_wait(self, job: str, *, timeout_ms: int = 0) -> Job:
        """Return one of them once it has ended, or as it is when the time is over."""
        from memd_client.jobs import Job  # noqa: PLC0415 - as above

        return Job(self._waiting("jobs.wait", {"job": job, "timeout_ms": timeout_ms}, timeout_ms))

    def jobs_cancel(self, job: str, reason: str | None = None) -> Job:
        """End one of them; what it has committed stays."""
        return self._job("jobs.cancel", {"job": job, "reason": reason})

    def jobs_run(self, job: str | None = None, *, session: str | None = None) -> Job:
        """Have a job that waits run now, or a review of what none has seen of a session."""
        return self._job("jobs.run", {"job": job, "session": session})

    def jobs_claim(self, job: str, session: str, *, style: Style = "openai") -> Claimed:
        """Take a review that is placed with this client, and get what its model needs."""
        from memd_client.jobs import Claimed  # noqa: PLC0415 - as above

        return Claimed(self.request("jobs.claim", {"job": job, "session": session, "style": style}))

    def jobs_renew(self, job: str, lease: str) -> Renewed:
        """Hold a claimed job longer."""
        from memd_client.jobs import Renewed  # noqa: PLC0415 - as above

        return Renewed(self.request("jobs.renew", {"job": job, "lease": lease}))

    def jobs_submit(
        self, job: str, lease: str, operations: Iterable[Mapping[str, Any]] = (), **told: Unpack[Submission]
    ) -> Job:
        """Hand over what the model wants, or with ``error`` that it led nowhere."""
        return self._job("jobs.submit", {"job": job, "lease": lease, "operations": _plain(list(operations)), **told})

    def _job(self, method: str, params: dict[str, Any]) -> Job:
        from memd_client.jobs import Job  # noqa: PLC0415 - as above

        return Job(self.request(method, params))

    # -- history -------------------------------------------------------------------------------------------------------

    def history_list(self, **chosen: Unpack[Revisions]) -> types.RevisionList:
        """Return a page of revisions, newest first."""
        return types.RevisionList(self.request("history.list", {**chosen}))

    def history_show(self, revision: int) -> types.RevisionShown:
        """Return one revision and the entries as they were after it."""
        return types.RevisionShown(self.request("history.show", {"revision": revision}))

    def history_diff(self, target: Target, from_: int, to: int | None = None) -> types.Diff:
        """Compare two revisions of a store, or one with now."""
        return types.Diff(self.request("history.diff", {"target": target, "from": from_, "to": to}))

    def history_undo(self, **selector: Unpack[Selector]) -> types.Undone:
        """Undo by ``revision``, ``job``, ``session`` or ``last``. With conflicts nothing is done."""
        return types.Undone(self.request("history.undo", {**selector}))

    def history_redo(self, **selector: Unpack[Selector]) -> types.Undone:
        """Undo an undo."""
        return types.Undone(self.request("history.redo", {**selector}))

    def history_redact(
        self, *, text: str | None = None, revision: int | None = None, **options: Unpack[MutationOptions]
    ) -> Redacted:
        """Take a text, or what a revision holds, out of everything memd keeps, for good. Operators only."""
        from memd_client.redacted import Redacted  # noqa: PLC0415 - only here

        said = {"text": text, "revision": revision, **options}
        return Redacted(self.request("history.redact", said))

    def history_restore(self, target: Target, revision: int, **options: Unpack[RestoreOptions]) -> types.Undone:
        """Make a store what it was at a revision, as a new revision."""
        return types.Undone(self.request("history.restore", {"target": target, "revision": revision, **options}))

    # -- approval ------------------------------------------------------------------------------------------------------

    def approval_list(self) -> ProposalList:
        """Return what waits for a person, oldest first."""
        from memd_client.proposals import ProposalList  # noqa: PLC0415 - as above

        return ProposalList(self.request("approval.list", {}))

    def approval_approve(
        self,
        id: str,  # noqa: A002 - the protocol's name
        content: str | None = None,
        **options: Unpack[MutationOptions],
    ) -> types.Mutation:
        """Apply a proposal, or let a withheld entry into prompts. For operators."""
        return types.Mutation(self.request("approval.approve", {"id": id, "content": content, **options}))

    def approval_reject(self, id: str, **options: Unpack[MutationOptions]) -> Proposal:  # noqa: A002 - as above
        """Settle a proposal without applying it. For operators."""
        from memd_client.proposals import Proposal  # noqa: PLC0415 - as above

        return Proposal(self.request("approval.reject", {"id": id, **options}))

    def scan_check(self, text: str, where: Literal["memory", "context"] = "context") -> Checked:
        """Say what the scan finds in a text that is to enter a prompt."""
        from memd_client.proposals import Checked  # noqa: PLC0415 - as above

        return Checked(self.request("scan.check", {"text": text, "where": where}))

    # -- events, profiles, daemon --------------------------------------------------------------------------------------

    def events_wait(
        self, topics: Iterable[str] = (), *, since_seq: int | None = None, timeout_ms: int = 0
    ) -> types.Events:
        """Wait for events and return them all at once."""
        said = {"topics": list(topics), "since_seq": since_seq, "timeout_ms": timeout_ms}
        return types.Events(self._waiting("events.wait", said, timeout_ms))

    def _waiting(self, method: str, params: dict[str, Any], wait_ms: int) -> Any:
        """A call that waits by itself: its time comes on top of the client's own."""
        if self.timeout is None:
            return self.request(method, params)
        params["deadline_ms"] = int(self.timeout * 1000)  # the daemon adds the wait by itself
        return self.request(method, params, timeout=self.timeout + wait_ms / 1000)

    def profile_list(self) -> types.ProfileList:
        """Return every profile."""
        return types.ProfileList(self.request("profile.list", {}))

    def profile_export(self) -> types.Exported:
        """Return this connection's profile as data."""
        return types.Exported(self.request("profile.export", {}))

    def profile_create(self, name: str, dir: str | None = None) -> dict[str, Any]:  # noqa: A002 - the protocol's name
        """Create a profile. For operators."""
        return dict(self.request("profile.create", {"name": name, "dir": dir}))

    def profile_import(
        self,
        name: str,
        data: Mapping[str, Any],
        *,
        preview: bool | None = None,
        if_revisions: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Put exported data or Markdown into a profile, or only say what that would do. For operators."""
        said = {"preview": preview, "if_revisions": None if if_revisions is None else dict(if_revisions)}
        return dict(self.request("profile.import", {"name": name, "data": dict(data), **said}))

    def daemon_status(self) -> types.Status:
        """Return the state of the daemon and all its profiles."""
        return types.Status(self.request("daemon.status", {}))

    def daemon_metrics(self) -> str:
        """Return the metrics as OpenMetrics text."""
        return str(self.request("daemon.metrics", {})["text"])

    def daemon_reload(self) -> None:
        """Have the settings read again. For operators."""
        self.request("daemon.reload", {})

    def daemon_stop(self) -> None:
        """Stop the daemon. For operators."""
        self.request("daemon.stop", {})

    def daemon_handover(self, version: str) -> bool:
        """Ask the daemon to make place for a newer one. For operators."""
        return bool(self.request("daemon.handover", {"version": version})["draining"])

    def rpc_ping(self) -> None:
        """Return when the daemon has answered."""
        self.request("rpc.ping", {})

    def rpc_discover(self) -> dict[str, Any]:
        """Return the description of all methods, errors and events."""
        return dict(self.request("rpc.discover", {}))


def _plain(messages: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    return None if messages is None else [dict(message) for message in messages]
