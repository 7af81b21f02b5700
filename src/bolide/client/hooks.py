"""Hooks: what an application wants to see of a client's work, and may keep it from doing.

A hook that raises is logged, and the work goes on without it.  One that runs before something may raise `Vetoed`:
then it does not happen.  Hooks of a `before` run in the order in which they were given, those of an `after` in the
reverse one.
"""

import asyncio
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bolide.client import checks
from bolide.client.application import called
from bolide.client.context import ConsumeContext
from bolide.client.gather import SendReceipt
from bolide.model.clock import Clock
from bolide.model.errors import ConfigError, Vetoed
from bolide.model.functions import is_coroutine_function
from bolide.model.message import Message
from bolide.model.offsets import MessageQueue
from bolide.record.stored import StoredMessage
from bolide.wire.command import Command, shown

log = logging.getLogger(__name__)

T = TypeVar("T")
Tell = Callable[[T], None] | None
Send = Callable[[], Awaitable[Sequence[SendReceipt]]]


@dataclass
class CallEvent:
    """One request to a server.  Before it goes, `fields` may be added to.

    Example::

        def watch(call: CallEvent) -> None:
            print(call.address, call.code, call.answer_code, call.error, call.took_ms)

    `answer_code`, `error` and `took_ms` are there afterwards: one of the first two, or neither if nobody waited.
    Afterwards `fields` has the proof of who asked, too, if there are credentials; what is printed of an event has not.
    """

    address: str
    code: int
    fields: dict[str, str]
    body: bytes = field(repr=False)
    answer_code: int | None = None
    error: BaseException | None = None
    took_ms: int | None = None

    def __repr__(self) -> str:
        return f"CallEvent({shown(self)})"


@dataclass
class SendEvent:
    """One send with all its tries; a batch is one.

    Example::

        def watch(send: SendEvent) -> None:
            print(send.group, len(send.messages), send.receipts, send.error, send.took_ms)

    `queue` is the one that was asked for, if any.  Afterwards there are `receipts`, none for a one-way send, or an
    `error`.
    """

    group: str
    messages: Sequence[Message]
    queue: MessageQueue | None = None
    receipts: Sequence[SendReceipt] = ()
    error: BaseException | None = None
    took_ms: int | None = None


@dataclass
class ConsumeEvent:
    """One call of a listener.

    Example::

        def watch(call: ConsumeEvent) -> None:
            print(call.group, len(call.messages), call.error, call.took_ms)

    `result` is what the listener returned, `error` what it raised.
    """

    group: str
    messages: Sequence[StoredMessage]
    result: object = None
    error: BaseException | None = None
    took_ms: int | None = None


@dataclass(frozen=True)
class Hooks:
    """What is called before and after the work of a client; whatever is left out is not called.

    Example::

        def slow(send: SendEvent) -> None:
            if send.took_ms > 100:
                print("slow:", send.messages[0].topic, send.took_ms)

        Producer("127.0.0.1:9876", hooks=[Hooks(after_send=slow)])

    Hooks are plain functions and must not wait: those of calls and sends run on the client's event loop, which blocking
    clients share; those of a consumption and the filter where the listener runs.  Consumers that are polled, or pull,
    have no listener: their filter runs on the event loop, too.  Clients that share connections (`instance_name`) see
    each other's calls.

    Args:
        before_call, after_call: a request to a server, whichever it is; heartbeats and questions for routes too.
        before_send, after_send: a send of the application with all its tries.
        before_consume, after_consume: a call of the listener.
        keep_message: takes a message before the listener, or whoever pulls, sees it; one for which it returns False is
            passed over as if it was consumed.
    """

    before_call: Tell[CallEvent] = None
    after_call: Tell[CallEvent] = None
    before_send: Tell[SendEvent] = None
    after_send: Tell[SendEvent] = None
    before_consume: Tell[ConsumeEvent] = None
    after_consume: Tell[ConsumeEvent] = None
    keep_message: Callable[[StoredMessage], bool] | None = None


class HookChain:
    """The hooks of one client, and where its work passes by them."""

    def __init__(self, hooks: Sequence[Hooks], clock: Clock) -> None:
        self._clock = clock
        self.all = _checked(hooks)
        backwards = self.all[::-1]
        self._before_send = [one.before_send for one in self.all if one.before_send]
        self._after_send = [one.after_send for one in backwards if one.after_send]
        self._before_consume = [one.before_consume for one in self.all if one.before_consume]
        self._after_consume = [one.after_consume for one in backwards if one.after_consume]
        self._keep = [one.keep_message for one in self.all if one.keep_message]

    def around_send(
        self, group: str, messages: Sequence[Message], queue: MessageQueue | None, send: Send
    ) -> Awaitable[Sequence[SendReceipt]]:
        """The send, and who is told of it; the send alone, if nobody is."""
        if not self._before_send and not self._after_send:
            return send()
        return self._told_of(SendEvent(group, messages, queue), send)

    async def _told_of(self, event: SendEvent, send: Send) -> Sequence[SendReceipt]:
        tell(self._before_send, event, may_veto=True)
        began_ms = self._clock.monotonic_ms()
        try:
            event.receipts = await send()
        except BaseException as error:
            event.error = error
            raise
        finally:
            event.took_ms = self._clock.monotonic_ms() - began_ms
            tell(self._after_send, event)
        return event.receipts

    @property
    def filters(self) -> bool:
        """Whether the application looks at each message before it sees it."""
        return bool(self._keep)

    def kept(self, messages: list[StoredMessage]) -> list[StoredMessage]:
        """Those that the application is to see."""
        return [messages[place] for place in self._places(messages)] if self._keep else messages

    def _places(self, messages: list[StoredMessage]) -> Sequence[int]:
        """Where those are."""
        if not self._keep:
            return range(len(messages))
        return [
            place
            for place, message in enumerate(messages)
            if all(_keeps(keep, message) for keep in self._keep)
        ]

    def around_listener(self, group: str, listener: Callable[..., Any]) -> Callable[..., Any]:
        """The listener, with the filter before it and the hooks around it; itself, if there are none.

        Whatever else it is called with is passed on.  It is still a coroutine function if it was one.
        """
        if not (self._before_consume or self._after_consume or self._keep):
            return listener
        if is_coroutine_function(listener):
            return self._around_coroutine(group, listener)

        @functools.wraps(listener)
        def call(messages: list[StoredMessage], *rest: Any) -> Any:
            consumption = _Consumption(self, group, messages, rest)
            event = consumption.event
            if not event.messages:
                return None
            with ExitStack() as end:
                end.enter_context(consumption)
                found = listener(event.messages, *rest)
                if inspect.isawaitable(found):
                    return _awaited(event, found, end.pop_all())
                event.result = found
            return event.result

        return call

    def _around_coroutine(
        self, group: str, listener: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(listener)
        async def call(messages: list[StoredMessage], *rest: Any) -> Any:
            consumption = _Consumption(self, group, messages, rest)
            event = consumption.event
            if event.messages:
                with consumption:
                    event.result = await listener(event.messages, *rest)
            return event.result

        return call


class CallHooks:
    """The hooks of all clients that share connections, around the requests that go over these."""

    def __init__(self, hooks: Iterable[Hooks], clock: Clock) -> None:
        self._clock = clock
        distinct = list({id(one): one for one in hooks}.values())
        self._before = [one.before_call for one in distinct if one.before_call]
        self._after = [one.after_call for one in reversed(distinct) if one.after_call]

    def __bool__(self) -> bool:
        return bool(self._before or self._after)

    def before(self, address: str, request: Command) -> "Callable[[asyncio.Future[Command]], None] | None":
        """A request goes; what is given is called at the end of the call."""
        event = CallEvent(address, request.code, request.fields, request.body)
        tell(self._before, event, may_veto=True)
        began_ms = self._clock.monotonic_ms()

        def after(call: "asyncio.Future[Command]") -> None:
            event.took_ms = self._clock.monotonic_ms() - began_ms
            if call.cancelled():
                event.error = asyncio.CancelledError()
            elif (error := call.exception()) is not None:
                event.error = error
            else:
                event.answer_code = call.result().code
            tell(self._after, event)

        return after if self._after else None


class _Consumption:
    """One call of a listener with the messages that are kept, between its hooks."""

    def __init__(
        self, chain: HookChain, group: str, messages: list[StoredMessage], rest: tuple[Any, ...]
    ) -> None:
        self._chain = chain
        self._places = chain._places(messages)
        self._context = rest[0] if rest and isinstance(rest[0], ConsumeContext) else None
        self._began_ms = 0
        self.event = ConsumeEvent(group, [messages[place] for place in self._places])

    def __enter__(self) -> None:
        tell(self._chain._before_consume, self.event, may_veto=True)
        self._began_ms = self._chain._clock.monotonic_ms()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.event.error = error
        self.event.took_ms = self._chain._clock.monotonic_ms() - self._began_ms
        tell(self._chain._after_consume, self.event)
        if self._context is not None:
            self._context.ack_index = self._index_of_all(self._context.ack_index)

    def _index_of_all(self, index: int | None) -> int | None:
        """The listener has counted what it got, and who has called it counts what the filter passed over, too."""
        if index is None or index + 1 >= len(self._places):
            return None
        return self._places[index + 1] - 1


async def _awaited(event: ConsumeEvent, found: Awaitable[Any], end: ExitStack) -> Any:
    """A plain function may give something to await: the call ends with that."""
    with end:
        event.result = await found
    return event.result


def tell(hooks: Iterable[Callable[[T], None]], event: T, *, may_veto: bool = False) -> None:
    """Call each; what one raises concerns nobody else, unless it is a veto where there can be one."""
    for hook in hooks:
        try:
            called(hook, event)
        except Vetoed:
            if may_veto:
                raise
            log.exception("a hook has vetoed what has happened already: only a before hook can")
        except Exception:
            log.exception("a hook failed, and the work goes on without it")


def _keeps(keep: Callable[[StoredMessage], bool], message: StoredMessage) -> bool:
    try:
        return bool(called(keep, message))
    except Exception:  # rather one too many than one lost
        log.exception("keep_message failed for %s, which is kept", message.message_id)
        return True


def _checked(hooks: object) -> tuple[Hooks, ...]:
    if isinstance(hooks, Hooks) or not isinstance(hooks, Iterable):
        raise ConfigError(
            f"hooks is a list of Hooks, as in [Hooks(after_send=watch)], not {checks.described(hooks)}"
        )
    found = tuple(hooks)
    for one in found:
        if not isinstance(one, Hooks):
            raise ConfigError(f"hooks is a list of Hooks, and one of them is {checks.described(one)}")
        for name in Hooks.__dataclass_fields__:
            hook = getattr(one, name)
            if hook is not None and (not callable(hook) or is_coroutine_function(hook)):
                raise ConfigError(f"{name} is a plain function, not {checks.described(hook)}")
    return found
