"""The settings as types: every section, key, default and bound.

What it is: the one list of what may stand in ``config.toml``; the names are relied on from outside. What comes in:
nothing; ``memd.config`` fills these from the file. What goes out: frozen structures. What must not be here: reading files,
the environment, deciding what a setting means. Import these from ``memd.config``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

# Upper bounds keep sums of times and sizes far inside 64 bits and catch a unit mistaken for another (ms for s).
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Amount = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Days = Annotated[int, Meta(ge=1, le=36_500)]
Percent = Annotated[int, Meta(ge=1, le=100)]
Seconds = Annotated[int, Meta(ge=0, le=31_536_000)]
Wait = Annotated[float, Meta(ge=0, le=86_400)]

Level = Literal["none", "read", "add", "full"]
Policy = Literal["apply", "stage", "refuse"]
Reviewer = Literal["rules", "openai", "anthropic", "command", "client", "off"]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the settings file."""


class Daemon(Section, frozen=True):
    """The process itself. ``symlink_roots``: where a memory file's link may lead beside its directory and the home."""

    grace_s: Annotated[float, Meta(ge=0, le=10)] = 4  # less than the TimeoutStopSec of systemd/memd.service
    idle_exit_s: Seconds = 0
    allow_root: bool = False
    symlink_roots: tuple[str, ...] = ()


class Wire(Section, frozen=True):
    """Limits that ``hello`` shows. Below 64 KiB a full store would not fit into one reply."""

    message_bytes: Annotated[int, Meta(ge=65_536, le=1_073_741_824)] = 8_388_608
    in_flight: Annotated[int, Meta(ge=1, le=65_536)] = 64
    connections: Annotated[int, Meta(ge=1, le=1_000_000)] = 1024
    deadline_ms: Annotated[int, Meta(ge=1, le=86_400_000)] = 10_000


class Stores(Section, frozen=True):
    """Which stores a profile has."""

    memory: bool = True
    user: bool = True


class Limits(Section, frozen=True):
    """Characters a store may hold, and the percentage from which it counts as nearly full."""

    memory: Amount = 2200
    user: Amount = 1375
    near_percent: Percent = 85


class Turn(Section, frozen=True):
    """The failure budget of one turn; the expiry is for clients that declare no turns."""

    failure_budget: Annotated[int, Meta(ge=1, le=1000)] = 3
    idle_expiry_s: Seconds = 300


class Access(Section, frozen=True):
    """What a connection may do, by the context it declares."""

    primary: Level = "full"
    subagent: Level = "read"
    cron: Level = "read"
    job: Level = "none"


class Sessions(Section, frozen=True):
    """How long an idle session is kept."""

    keep_days: Days = 30


class OpenAiReviewer(Section, frozen=True):
    """An OpenAI-compatible endpoint; the default is the usual port of a model server on this machine."""

    base_url: str = "http://127.0.0.1:8080/v1"
    model: str = ""
    mode: Literal["tools", "json_schema"] = "tools"
    api_key_file: str = ""


class AnthropicReviewer(Section, frozen=True):
    """The Messages endpoint."""

    base_url: str = "https://api.anthropic.com"
    model: str = ""
    api_key_file: str = ""


class CommandReviewer(Section, frozen=True):
    """A program that reviews."""

    argv: tuple[str, ...] = ()
    timeout_s: Annotated[int, Meta(ge=1, le=86_400)] = 120


class Review(Section, frozen=True):
    """Nudge reviews. ``interval`` in completed user turns, 0 switches them off; ``prompt_file`` empty: the built-in one."""

    reviewer: Reviewer = "rules"
    fallback: tuple[Reviewer, ...] = ()
    interval: Amount = 10
    idle_s: Wait = 2.0
    max_steps: Annotated[int, Meta(ge=1, le=1000)] = 8
    timeout_s: Annotated[int, Meta(ge=1, le=86_400)] = 120
    lease_s: Annotated[int, Meta(ge=1, le=86_400)] = 60
    tokens_per_job: Amount = 60_000
    tokens_per_day: Amount = 500_000
    keep_messages_days: Days = 7
    tool_bodies: bool = False
    prompt_file: str = ""
    topics_allow: tuple[str, ...] = ()
    topics_deny: tuple[str, ...] = ()
    openai: OpenAiReviewer = OpenAiReviewer()
    anthropic: AnthropicReviewer = AnthropicReviewer()
    command: CommandReviewer = CommandReviewer()


class Flush(Section, frozen=True):
    """Flushes before compaction."""

    min_turns: Amount = 6
    min_new_turns: Amount = 1
    cooldown_s: Seconds = 60


class Approval(Section, frozen=True, rename={"import_": "import"}):
    """What happens to a write, by its origin."""

    user: Policy = "apply"
    agent: Policy = "apply"
    tool: Policy = "stage"
    import_: Policy = "apply"
    outside: Literal["apply", "withhold"] = "apply"
    review_add: Policy = "apply"
    review_change: Policy = "stage"
    flush_add: Policy = "apply"
    flush_change: Policy = "stage"
    expiry_days: Days = 30


class Scan(Section, frozen=True):
    """Rule ids that are switched off, or lowered to a warning."""

    off: tuple[str, ...] = ()
    warn: tuple[str, ...] = ()


class History(Section, frozen=True):
    """How much history is kept."""

    keep_days: Days = 365
    keep_revisions: Count = 10_000
    max_mb: Annotated[int, Meta(ge=1, le=1_048_576)] = 256


class ProfileSections(Section, frozen=True):
    """The sections that may be repeated under ``[profiles.NAME]``."""

    stores: Stores = Stores()
    limits: Limits = Limits()
    turn: Turn = Turn()
    access: Access = Access()
    review: Review = Review()
    flush: Flush = Flush()
    approval: Approval = Approval()
    scan: Scan = Scan()


class ProfileTable(ProfileSections, frozen=True):
    """A ``[profiles.NAME]`` table as it may stand in the file."""

    dir: str = ""


class ProfileSettings(ProfileSections, frozen=True, kw_only=True):
    """Everything that holds for one profile, its overrides merged over the general sections."""

    name: str
    dir: str


class Sections(ProfileSections, frozen=True):
    """Every section of the file but ``[profiles.*]``."""

    daemon: Daemon = Daemon()
    wire: Wire = Wire()
    sessions: Sessions = Sessions()
    history: History = History()


class Settings(Sections, frozen=True, kw_only=True):
    """The effective settings.

    ``path`` is the file that was read, None if there is none. ``sources`` maps the dotted key of every value that the file
    sets to ``path:line``.
    """

    profiles: dict[str, ProfileSettings]
    path: str | None = None
    sources: dict[str, str] = {}
