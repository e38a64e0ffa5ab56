"""The dispatcher: every request of every connection, from its name to its answer.

What comes in: requests from conversations; time as ``trio.current_time``. What goes out: exactly one reply for each. What
must not be here: what a method does, sockets, SQL, files.

Most requests are answered inline in the connection's own loop, or from the writer's callback: a task for each would cost
several times the request. Only methods of kind ``task`` run in the dispatcher's nursery. Deadlines are one sweep over all
that is in flight. A bug in a handler becomes an ``internal`` reply and a logged traceback, here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import trio

from memd.dispatch.call import Call, Pending
from memd.dispatch.conversation import Conversation
from memd.dispatch.flight import BUCKET_S, Flight
from memd.errors import (
    Cancelled,
    DeadlineExceeded,
    InternalError,
    InvalidRequest,
    MemdError,
    MethodNotFound,
    ShuttingDown,
    TooManyRequests,
    WireError,
)
from memd.protocol.decode import decode_params, peek_errors_form

if TYPE_CHECKING:
    from collections.abc import Callable

    from memd.dispatch.context import Services
    from memd.dispatch.ports import Channel
    from memd.dispatch.table import Method, MethodTable
    from memd.protocol.messages import Request
    from memd.protocol.params import Params


LATER = object()
"""In the place of an answer: somebody else will reply."""

REMEMBERED = 1024
REMEMBERED_BYTES = 256
"""How many parameters are remembered, and how long they may be: a session's id and some more."""

_UNDER_WAY = (Pending, CoroutineType)
_STOPPING = "memd is starting or stopping; connect again in a moment"


@dataclass(frozen=True, slots=True)
class DispatchStatistics:
    """Counters since start."""

    requests: int
    errors: int
    bugs: int
    in_flight: int
    conversations: int


class Dispatcher:
    """All conversations. ``run`` in a nursery of its own, which has to outlive the connections.

    Args:
        table: The methods.
        services: What handlers work with.
        on_bug: Told of every exception that is not one of ours, with the method's name.
        flight: What is in flight; given by tests that want other bounds.
    """

    def __init__(
        self,
        table: MethodTable,
        services: Services,
        *,
        on_bug: Callable[[str, Exception], None],
        flight: Flight | None = None,
    ) -> None:
        self.services = services
        self.flight = flight if flight is not None else Flight()
        self._table = table
        self._on_bug = on_bug
        self._nursery: trio.Nursery | None = None
        self._conversations: dict[Conversation, None] = {}
        self._draining = False
        self._remembered: dict[tuple[str, bytes], Params] = {}
        self._requests = 0
        self._errors = 0
        self._bugs = 0

    def __repr__(self) -> str:
        return f"<Dispatcher {len(self._conversations)} conversations, {self.flight!r}>"

    def statistics(self) -> DispatchStatistics:
        """Counters since start."""
        return DispatchStatistics(self._requests, self._errors, self._bugs, self.flight.count, len(self._conversations))

    # -- life ---------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run tasks, deadlines and events until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._sweep)
            nursery.start_soon(self.services.hub.run)
            task_status.started()

    def open_conversation(self, channel: Channel) -> Conversation:
        """A new connection."""
        conversation = Conversation(self, channel)
        self._conversations[conversation] = None
        return conversation

    def forget(self, conversation: Conversation) -> None:
        """Its connection is gone."""
        self._conversations.pop(conversation, None)

    def drain(self) -> None:
        """Take nothing new but ``rpc.*``; long polls are answered with what there is."""
        self._draining = True
        self.services.hub.close()

    async def wait_idle(self) -> None:
        """Until everything in flight is answered."""
        await self.flight.wait_idle()

    def abandon(self) -> None:
        """Answer everything that is still in flight: the daemon ends now."""
        for call in self.flight.everything():
            self._give_up(call, ShuttingDown, f"memd stopped before {call.method} was done")

    # -- one request --------------------------------------------------------------------------------------------

    def start(self, conversation: Conversation, request: Request) -> None:
        """Handle a request; its reply is sent before this returns, or later."""
        self._requests += 1
        method = self._table.get(request.method)
        mutation = method is not None and method.mutation
        call = Call(conversation, request.msgid, request.method, mutation=mutation, size=request.size)
        if request.method == "hello":
            conversation.ask_errors_form(peek_errors_form(request.params))
        self._answer(call, self._handle, conversation, method, call, request)

    def take_out(self, call: Call) -> bool:
        """Cancel a call if nothing has happened for it yet; it is then answered with ``cancelled``."""
        error = Cancelled(f"{call.method} was cancelled by rpc.cancel", outcome="none" if call.mutation else None)
        if call.pending is not None:
            return not call.pending.shared and call.pending.ticket.withdraw(error)
        if call.scope is None or call.mutation:
            return False
        call.fail(error)
        call.scope.cancel()
        return True

    # -- inside -------------------------------------------------------------------------------------------------

    def _handle(self, conversation: Conversation, method: Method | None, call: Call, request: Request) -> object:
        """The answer, or ``LATER``."""
        method = self._admit(conversation, method, call)
        params = self._params(request, method)
        call.polls = method.waits
        answer = method.handler(conversation.context, params)
        if method.kind != "sync" and isinstance(answer, _UNDER_WAY):
            return self._launch(conversation, call, self._deadline(method, params), answer)
        return answer

    def _params(self, request: Request, method: Method) -> Params:
        """The decoded parameters. Short ones of ``sync`` methods are remembered: the same few come again and again."""
        if method.kind != "sync" or request.size > REMEMBERED_BYTES:
            return decode_params(request.params, method.params)
        key = (method.name, bytes(request.params))
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= REMEMBERED:
                self._remembered.clear()
            found = self._remembered[key] = decode_params(request.params, method.params)
        return found

    def _admit(self, conversation: Conversation, method: Method | None, call: Call) -> Method:
        context = conversation.context
        if not context.settled and call.method != "hello":
            context.settle_defaults()
        if method is None:
            raise MethodNotFound(call.method)
        if self._draining and not call.method.startswith("rpc."):
            raise ShuttingDown(_STOPPING)
        context.require(call.method, method.access)
        if method.kind != "sync":
            limit = self.services.settings().wire.in_flight
            if len(conversation.calls) >= limit:
                msg = f"{limit} requests of this connection are in flight; wait for a reply before sending more"
                raise TooManyRequests(msg, limit=limit)
            if call.msgid in conversation.calls:
                msg = f"msgid {call.msgid} is still in flight; use another for each request"
                raise InvalidRequest(msg)
        return method

    def _deadline(self, method: Method, params: Params) -> float:
        wait_ms = params.deadline_ms if params.deadline_ms is not None else self.services.settings().wire.deadline_ms
        if method.waits:
            wait_ms += getattr(params, "timeout_ms", 0) + getattr(params, "wait_ms", 0)
        return trio.current_time() + wait_ms / 1000

    def _launch(
        self, conversation: Conversation, call: Call, deadline: float, answer: Pending | CoroutineType[Any, Any, Any]
    ) -> object:
        """Let a call be answered later, if there is anything to wait for."""
        if isinstance(answer, Pending) and answer.ticket.done:
            return answer.settle(answer.ticket)
        call.deadline = deadline
        call.in_flight = True
        conversation.calls[call.msgid] = call
        self.flight.add(call)
        if isinstance(answer, Pending):
            call.pending = answer
            settle = answer.settle
            answer.ticket.on_done(lambda ticket: self._answer(call, settle, ticket))
            return LATER
        call.scope = scope = trio.CancelScope()
        if self._nursery is None:
            answer.close()
            raise ShuttingDown(_STOPPING)
        self._nursery.start_soon(self._run, call, conversation, scope, answer)
        return LATER

    async def _run(
        self, call: Call, conversation: Conversation, scope: trio.CancelScope, work: CoroutineType[Any, Any, Any]
    ) -> None:
        """Run a handler of kind ``task``. Reads are cancelled with their connection, changes are not."""
        if call.mutation:
            conversation.hold_events()
        with scope:
            with _Guarded(self, call):
                call.reply(await work)
        if call.mutation:
            conversation.let_events_go()
        if not call.done:  # cancelled by its connection's end
            call.fail(Cancelled("the connection is gone"))

    def _answer(self, call: Call, make: Callable[..., object], *args: object) -> None:
        """Reply with what ``make(*args)`` gives, or with what it raises."""
        try:
            try:
                answer = make(*args)
                if answer is not LATER:
                    call.reply(answer)
            except WireError as error:
                self._errors += 1
                call.fail(error)
        except Exception as bug:  # noqa: BLE001 - the one place where a bug of a handler becomes a reply
            self._bugs += 1
            self._on_bug(call.method, bug)
            outcome = "unknown" if call.mutation else None
            call.fail(InternalError(f"{call.method} failed by a bug in memd; its log has the details", outcome=outcome))

    def answer_with(self, call: Call, error: Exception) -> None:
        """Reply with this error."""
        self._answer(call, _raise, error)

    async def _sweep(self) -> None:
        """Answer every call whose deadline has passed."""
        while True:
            await self.flight.wait_busy()
            await trio.sleep(BUCKET_S)
            for call in self.flight.due(trio.current_time()):
                self._expire(call)

    def _expire(self, call: Call) -> None:
        self._give_up(call, DeadlineExceeded, f"{call.method} was not done within its deadline")

    def _give_up(self, call: Call, kind: type[DeadlineExceeded | ShuttingDown], message: str) -> None:
        """Take a call out of its queue, or say that its outcome is unknown."""
        if call.pending is not None and not call.pending.shared:
            ticket = call.pending.ticket
            error: MemdError = kind(message, outcome="none" if call.mutation else None)
            if kind is DeadlineExceeded:
                # What it waited for says more than that it waited: ``busy`` names who holds the file's lock.
                error = ticket.blocked_by or error
            if ticket.withdraw(error):
                return
        self._errors += 1
        call.fail(kind(message, outcome="unknown" if call.mutation else None))
        if call.scope is not None and not call.mutation:
            call.scope.cancel()


class _Guarded:
    """``Dispatcher._answer`` for what is awaited: whatever is raised inside becomes the reply."""

    __slots__ = ("_call", "_dispatcher")

    def __init__(self, dispatcher: Dispatcher, call: Call) -> None:
        self._dispatcher = dispatcher
        self._call = call

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if not isinstance(error, Exception):  # nothing, or a cancellation, which is no failure
            return False
        self._dispatcher.answer_with(self._call, error)
        return True


def _raise(error: Exception) -> object:
    raise error
