"""What a connection is and may do, and the daemon's parts that handlers work with.

What comes in: a ``hello`` or the first call without one; the daemon's parts as arguments. What goes out: the connection's
profile, access, caller, turn and budget, as handlers ask for them. What must not be here: single methods, sending.

Until the first call nothing is settled. ``hello`` settles it, any other call settles it with the defaults, and then it
stays. Access is worked out on each call, because the settings may be reloaded under an open connection.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from memd.dispatch import access as access_rules
from memd.dispatch.caches import AnswerCache
from memd.dispatch.origin import settle_origin
from memd.dispatch.ports import NOBODY
from memd.errors import InvalidParams, NoSuchProfile
from memd.profile.values import Caller, Notice
from memd.sessions import FailureBudget, Session, SessionRegistry, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memd.config import ProfileSettings, Settings
    from memd.dispatch.access import Access, Level, Role
    from memd.dispatch.hub import EventHub, Subscription
    from memd.dispatch.ports import Control, Lineage, Peer, Profile
    from memd.errors import WireError
    from memd.jobs import Flushing, Jobs
    from memd.protocol.certify import Certification
    from memd.protocol.results import Discovery

ContextName = Literal["primary", "subagent", "cron", "job"]

US = 1_000_000


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of the daemon that handlers use.

    Args:
        profiles: Every configured profile by name; may change under us.
        settings: The effective settings now.
        clock: Microseconds since the epoch.
        describe: What ``rpc.discover`` answers.
        problems: Why configured profiles are not among ``profiles``, by name.
        lineage: Where a process comes from.
        jobs: Reviews and flushes.
        flushing: What becomes of compactions.
        agents: How many agent connections each process has.
    """

    profiles: Mapping[str, Profile]
    sessions: SessionRegistry
    jobs: Jobs
    flushing: Flushing
    hub: EventHub
    control: Control
    settings: Callable[[], Settings]
    clock: Callable[[], int]
    describe: Callable[[], Discovery]
    problems: Mapping[str, WireError] = field(default_factory=dict)
    lineage: Callable[[int], Lineage] = field(default=lambda _: NOBODY)
    agents: Counter[int] = field(default_factory=Counter)
    answers: AnswerCache = field(default_factory=AnswerCache)


@dataclass(slots=True)
class Writing:
    """Everything about a write but the write: who, in which turn, on which budget."""

    caller: Caller
    budget: FailureBudget | None
    notices: tuple[Notice, ...]


class Context:
    """One connection as handlers see it."""

    def __init__(self, services: Services, peer: Peer, *, cancel: Callable[[int], bool]) -> None:
        self.services = services
        self.peer = peer
        if peer.role == "agent":
            services.agents[peer.pid] += 1
        self.cancel = cancel
        self.settled = False
        self.client = ""
        self.context: ContextName = "primary"
        self.subscription: Subscription | None = None
        self.certification: Certification | None = None
        self.notify: Callable[[bytes], None] = _nowhere
        self._claimed: Access | None = None
        self._profile: str | None = None
        self._attached: Profile | None = None
        self._ranked_by: ProfileSettings | None = None
        self._rank = 0
        self._watched: dict[str, Session] = {}
        self._budget: FailureBudget | None = None

    def __repr__(self) -> str:
        return f"<Context {self.client or 'unnamed'} of {self._profile}, {self.context}, {self.access} as {self.role}>"

    # -- what was settled ---------------------------------------------------------------------------------------

    def settle(
        self, *, profile: str | None, context: ContextName, access: Access | None, client: str, required: bool = True
    ) -> None:
        """Fix what the connection is.

        Raises:
            NoSuchProfile: There is none of this name, or several and none was named (unless not ``required``).
                Nothing is settled.
            StoreError: It is configured and cannot be served.
        """
        configured = [*self.services.profiles, *self.services.problems]
        if profile is None and len(configured) == 1:
            profile = configured[0]
        if required or profile in self.services.profiles:
            self._attached = found = self._find(profile)
            profile = found.name
            found.attach()
            self.services.hub.attach(found)
        self._profile = profile
        self.context = context
        self._claimed = access
        self.client = client
        self._ranked_by = None
        self.settled = True

    def settle_defaults(self) -> None:
        """What holds without a ``hello``; with several profiles, none is chosen."""
        self.settle(profile=None, context="primary", access=None, client="", required=False)

    @property
    def profile(self) -> Profile:
        """The connection's profile.

        Raises:
            NoSuchProfile: Several are configured and none was named, or it is gone.
            StoreError: It cannot be served, for example because another daemon owns it.
        """
        return self._find(self._profile)

    @property
    def role(self) -> Role:
        """By the socket."""
        return self.peer.role

    @property
    def access(self) -> Access:
        """What the settings give to this context now, or less if less was asked for."""
        found = self.services.profiles.get(self._profile or "")
        table = found.settings.access if found is not None else self.services.settings().access
        return access_rules.lower(getattr(table, self.context), self._claimed)

    def require(self, name: str, level: Level) -> None:
        """Refuse a call that this connection may not make.

        Raises:
            PermissionDenied: It may not.
        """
        if not self.may(level):
            access_rules.require(name, level, access=self.access, role=self.role)

    def may(self, level: Level) -> bool:
        """True if calls of this level are allowed."""
        settings = self._attached.settings if self._attached is not None else None
        if settings is None or settings is not self._ranked_by:
            self._rank = access_rules.rank_of(self.access, self.role)
            self._ranked_by = settings
        return access_rules.RANK[level] <= self._rank

    def _find(self, name: str | None) -> Profile:
        profiles = self.services.profiles
        if name is not None and name in profiles:
            return profiles[name]
        if name is not None and name in self.services.problems:
            problem = self.services.problems[name]
            raise type(problem)(problem.message, **problem.extra)  # its own: an error is written to when it is sent
        names = sorted([*profiles, *self.services.problems])
        listed = ", ".join(names) or "none"
        if name is None:
            message = f"several profiles are configured and hello named none; name one of: {listed}"
        else:
            message = f"no profile {name!r}; there are: {listed}"
        raise NoSuchProfile(message, profiles=names)

    # -- sessions -----------------------------------------------------------------------------------------------

    def session(self, session_id: str) -> Session:
        """The session with this id, in use by this connection from now on.

        Raises:
            NoSuchSession: There is none in this profile.
        """
        session = self.services.sessions.get(self.profile.name, session_id)
        self.watch(session)
        return session

    def watch(self, session: Session) -> None:
        """Have ``snapshot.stale`` emitted for a session while this connection lives."""
        if session.id not in self._watched:
            self._watched[session.id] = session
            self.services.sessions.watch(session)

    def close(self) -> None:
        """The connection is gone. Call it once."""
        if self.peer.role == "agent":
            agents = self.services.agents
            agents[self.peer.pid] -= 1
            if not agents[self.peer.pid]:
                del agents[self.peer.pid]
        self.unsubscribe()
        for session in self._watched.values():
            self.services.sessions.unwatch(session)
        self._watched.clear()
        if self._attached is not None:
            self._attached.detach()
            self._attached = None

    def unsubscribe(self) -> None:
        """Want no events any more."""
        if self.subscription is not None and self._profile is not None:
            self.services.hub.unsubscribe(self._profile, self.subscription)
        self.subscription = None

    # -- writes -------------------------------------------------------------------------------------------------

    def writing(self, params: Any, *, through_tool: bool = False) -> Writing:
        """Who writes, by the parameters every mutation has.

        Raises:
            NoSuchSession, InvalidRequest: The session is unknown, or the turn is not open in it.
            InvalidParams: A turn without a session, or an origin or a request id that cannot be.
        """
        _check_request_id(params.request_id)
        session, turn = self._turn(params.session, params.turn)
        user_turn = turn is not None and turn.user
        claim: str | None = params.origin
        agent = self.agent_above()
        role: Role = "agent" if agent is not None else self.role
        if agent is not None and not through_tool:
            claim = claim or "user"  # as the socket has it, so that it is told
        origin, lowered = settle_origin(claim, role=role, user_turn=user_turn, through_tool=through_tool)
        caller = Caller(
            client=self.client,
            uid=self.peer.uid,
            pid=self.peer.pid,
            origin=origin,
            session=session.id if session is not None else None,
            turn=turn.id if turn is not None else None,
            reason=self._reason(params),
            person=role == "operator" and not through_tool,
        )
        notices = (_lowered(claim, origin, agent),) if lowered else ()
        return Writing(caller, self.budget(turn), notices)

    def agent_above(self) -> int | None:
        """On the operator socket: the process that started this one and is connected as an agent, as far as can be seen.

        What a model has a shell do is not what a person does. The process itself may be both: then it is a host's own code that
        has asked the person.
        """
        if self.role != "operator" or not self.services.agents:
            return None
        ancestors = self.services.lineage(self.peer.pid).ancestors
        return next((one for one in ancestors if self.services.agents[one] > 0), None)

    def budget(self, turn: Turn | None) -> FailureBudget | None:
        """The failure budget of a turn, else of the connection; operators have none."""
        if self.role == "operator":
            return None
        if turn is not None:
            return turn.budget
        idle_us = self.profile.settings.turn.idle_expiry_s * US
        if self._budget is None:
            self._budget = FailureBudget(idle_us=idle_us)
        self._budget.idle_us = idle_us
        return self._budget

    def _reason(self, params: Any) -> str | None:
        """Why, without secrets: it is kept with the change, and told to whoever reads history or events."""
        reason: str | None = getattr(params, "reason", None)
        return self.profile.mask(reason) if reason else reason

    def _turn(self, session_id: str | None, turn_id: str | None) -> tuple[Session | None, Turn | None]:
        if session_id is None:
            if turn_id is not None:
                msg = "turn: a turn belongs to a session; give its session too"
                raise InvalidParams(msg, field="turn")
            return None, None
        session = self.session(session_id)
        return session, session.turn_for(turn_id)


def _nowhere(_: bytes) -> None:
    """Where events go before the connection says where."""


def _check_request_id(value: str | None) -> None:
    if value is not None and not 1 <= len(value.encode()) <= 64:
        msg = f"request_id: 1 to 64 bytes expected, got {len(value.encode())}; a UUID is a good one"
        raise InvalidParams(msg, field="request_id")


def _lowered(claim: str | None, origin: str, agent: int | None) -> Notice:
    why = "a write counts as the user's only inside an open turn that was begun with user: true"
    if agent is not None:
        why = f"process {agent}, which started this one, is connected as an agent, so that no person need have asked for it"
    message = f"the origin {claim!r} was lowered to {origin!r}: {why}"
    return Notice("origin_lowered", message, {"claimed": claim, "origin": origin})
