"""Links: requests and calls over real sockets, errors, slow readers."""

import asyncio
import socket

import pytest

from bolide.model.errors import CallTimeout, ConnectionLost, InvalidRequest
from bolide.model.limits import REQUESTS_PER_TURN
from bolide.net import caller_link
from bolide.net import link as link_module
from bolide.net.caller import Caller
from bolide.net.clock import SystemClock
from bolide.net.commons import Commons
from bolide.net.link import Link, encode_host
from bolide.net.outbox import APART_BYTES
from bolide.wire.command import COMPACT, Command, encode_frame
from tests.unit.net.stage import Bench, Wire, eventually, pause, serving
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import HeldClock


def echo(link: Link, request: Command) -> Command:
    return request.answer(fields=request.fields, body=request.body)


def refuse(link: Link, request: Command) -> Command:
    raise InvalidRequest("not like this")


def break_down(link: Link, request: Command) -> Command:
    raise KeyError("oops")


def say_nothing(link: Link, request: Command) -> None:
    return None


DEADLINE_MS = 20
HANDLERS = {1: echo, 2: refuse, 3: break_down, 4: say_nothing}


def test_requests_are_answered_in_their_own_header_form() -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (_, _, address):
            wire = await Wire.connect(address)
            for form in (0, COMPACT):
                answer = await wire.ask(Command(1, {"a": "b"}, b"body", opaque=5, form=form))
                assert (answer.code, answer.opaque, answer.form, answer.body) == (0, 5, form, b"body")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "expected", "remark"),
    [
        (2, 29, "not like this"),
        (3, 1, "KeyError: 'oops'"),
        (77, 3, "request code 77 is not supported"),
        (-5, 3, "request code -5 is not supported"),
    ],
)
def test_every_failure_is_an_answer_with_words_and_the_connection_goes_on(
    code: int, expected: int, remark: str
) -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (_, _, address):
            wire = await Wire.connect(address)
            answer = await wire.ask(Command(code, opaque=9))
            assert (answer.code, answer.remark, answer.opaque) == (expected, remark, 9)
            assert (await wire.ask(Command(1, opaque=10))).opaque == 10

    asyncio.run(main())


def test_a_one_way_request_is_never_answered_whatever_happens() -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (_, _, address):
            wire = await Wire.connect(address)
            wire.send(*(Command(code, opaque=code, flag=2) for code in (1, 2, 3, 4, 77)))
            assert (await wire.ask(Command(1, opaque=99))).opaque == 99

    asyncio.run(main())


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"\xff" * 100, bytes(8)]
)
def test_bytes_that_are_no_frame_close_their_connection_and_no_other(data: bytes) -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (bench, _, address):
            good, bad = await Wire.connect(address), await Wire.connect(address)
            await good.ask(Command(1))
            bad.send(encode_frame(Command(1)) + data.ljust(8, b"\0"))
            assert (await bad.next()).code == 0
            assert await bad.closed()
            assert (await good.ask(Command(1))).code == 0
            await eventually(lambda: len(bench.closed) == 1)

    asyncio.run(main())


def test_a_call_gets_its_answer_or_the_reason_why_not() -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (_, server, address):
            caller = Caller(SystemClock())
            answers = await asyncio.gather(
                *(caller.call(address, Command(1, {"n": str(n)}), 5000) for n in range(50))
            )
            assert [answer.fields["n"] for answer in answers] == [str(n) for n in range(50)]
            with pytest.raises(CallTimeout, match=f"^no answer from {address} within 30 ms$"):
                await caller.call(address, Command(4), 30)
            waiting = asyncio.ensure_future(caller.call(address, Command(4), 5000))
            await pause()
            for link in list(server.links):
                link.close()
            with pytest.raises(ConnectionLost):
                await waiting
            assert (await caller.call(address, Command(1), 5000)).code == 0  # a new connection
            await caller.close()

    asyncio.run(main())


async def unanswered(caller: Caller, address: str, clock: HeldClock, passes_ms: int = 0) -> None:
    """A call that gets no answer within its time, while so much more passes by the clock."""
    link = await caller.link(address)
    call = link.call(Command(4), DEADLINE_MS)
    await pause()
    clock.ms += DEADLINE_MS + passes_ms
    with pytest.raises(CallTimeout):
        await call


def test_a_connection_on_which_a_call_times_out_and_nothing_came_since_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other side may have lost power: no kernel tells us for a quarter of an hour."""
    monkeypatch.setattr(caller_link, "SILENT_MS", DEADLINE_MS)
    clock = HeldClock()

    async def main() -> None:
        async with serving(HANDLERS) as (bench, _, address):
            caller = Caller(clock)
            assert (await caller.call(address, Command(1), 5000)).code == 0  # in the same millisecond
            await unanswered(caller, address, clock)
            assert (await caller.call(address, Command(1), 5000)).code == 0  # a new connection
            assert len(bench.opened) == 2
            await eventually(lambda: bench.closed)
            await caller.close()

    asyncio.run(main())


def test_other_calls_on_a_connection_that_is_given_up_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_link, "SILENT_MS", DEADLINE_MS)
    clock = HeldClock()

    async def main() -> None:
        async with serving(HANDLERS) as (_, _, address):
            caller = Caller(clock)
            held = (await caller.link(address)).call(Command(4), 60_000)
            await unanswered(caller, address, clock)
            with pytest.raises(ConnectionLost):
                await held
            await caller.close()

    asyncio.run(main())


def test_a_connection_that_brings_something_survives_calls_that_time_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caller_link, "SILENT_MS", DEADLINE_MS)
    clock = HeldClock()

    async def main() -> None:
        async with serving(HANDLERS) as (bench, _, address):
            caller = Caller(clock)
            for _ in range(3):
                silent = asyncio.ensure_future(unanswered(caller, address, clock))
                await pause()
                assert (await caller.call(address, Command(1), 5000)).code == 0
                await silent
            assert len(bench.opened) == 1
            await caller.close()

    asyncio.run(main())


def test_a_process_that_stood_still_does_not_take_its_connections_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What came meanwhile is not read yet when the deadlines are looked at."""
    monkeypatch.setattr(caller_link, "SILENT_MS", DEADLINE_MS)
    clock = HeldClock()

    async def main() -> None:
        async with serving(HANDLERS) as (bench, _, address):
            caller = Caller(clock)
            await unanswered(caller, address, clock, passes_ms=60_000)
            assert (await caller.call(address, Command(1), 5000)).code == 0
            assert len(bench.opened) == 1
            await caller.close()

    asyncio.run(main())


def test_a_closed_caller_opens_no_connection_that_nobody_would_close() -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (_, server, address):
            caller = Caller(SystemClock())
            await caller.close()
            with pytest.raises(ConnectionLost, match="closed"):
                await caller.link(address)
            assert not server.links

    asyncio.run(main())


def test_a_short_deadline_behind_a_long_one_is_kept() -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (_, _, address):
            caller = Caller(SystemClock())
            long = asyncio.ensure_future(caller.call(address, Command(4), 60_000))
            await pause()
            with pytest.raises(CallTimeout):
                await caller.call(address, Command(4), 20)
            long.cancel()
            await caller.close()

    asyncio.run(main())


def test_a_server_calls_its_clients_over_their_own_connection() -> None:
    async def main() -> None:
        asked: list[Command] = []

        def answer(link: Link, request: Command) -> None:
            asked.append(request)
            link.answer(request.answer(remark="from the client"))

        async with serving(HANDLERS) as (bench, _, address):
            caller = Caller(SystemClock(), on_request=answer)
            await caller.call(address, Command(1), 5000)
            (link,) = bench.opened
            assert (await link.call(Command(307), 5000)).remark == "from the client"
            link.notify(Command(40))
            await eventually(lambda: [request.code for request in asked] == [307, 40])
            assert asked[1].is_one_way
            await caller.close()

    asyncio.run(main())


def test_a_client_that_does_not_read_is_not_served_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many requests in one write, each with a large answer: memory stays near the limit, not near their sum."""
    monkeypatch.setattr(link_module, "WRITE_BUFFER_BYTES_MAX", 64 * 1024)
    served = 0

    def large(link: Link, request: Command) -> Command:
        nonlocal served
        served += 1
        return request.answer(body=bytes(100_000))

    async def main() -> None:
        async with serving({1: large, 5: echo}) as (bench, _, address):
            slow, other = await Wire.connect(address), await Wire.connect(address)
            slow.reader._transport.pause_reading()  # type: ignore[attr-defined]
            count = 400
            slow.send(*(Command(1, opaque=number) for number in range(count)), Command(5, opaque=count))
            await eventually(lambda: served > 0 and bench.opened[0].is_congested)
            before = -1
            while before != served:  # until it stands still
                before = served
                assert (await other.ask(Command(5))).code == 0  # others do not notice
                await pause(0.05)
            assert served < count / 2
            slow.reader._transport.resume_reading()  # type: ignore[attr-defined]
            assert [(await slow.next()).opaque for _ in range(count + 1)] == list(range(count + 1))

    asyncio.run(main())


def test_a_caller_with_much_to_send_still_reads_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides have more to say than the sockets hold; if both stopped reading they would wait for ever."""
    monkeypatch.setattr(link_module, "WRITE_BUFFER_BYTES_MAX", 64 * 1024)

    async def main() -> None:
        async with serving({1: echo}) as (_, _, address):
            caller = Caller(SystemClock())
            link = await caller.link(address)
            calls = [link.call(Command(1, body=bytes(20_000)), 30_000) for _ in range(1500)]
            answers = await asyncio.gather(*calls)
            assert all(len(answer.body) == 20_000 for answer in answers)
            await caller.close()

    asyncio.run(main())


def test_an_answer_to_a_closed_link_is_swallowed() -> None:
    async def main() -> None:
        async with serving(HANDLERS) as (bench, _, address):
            wire = await Wire.connect(address)
            await wire.ask(Command(1))
            wire.close()
            await eventually(lambda: len(bench.closed) == 1)
            (link,) = bench.closed
            link.answer(Command(1))
            link.write(b"x")
            link.notify(Command(40))
            with pytest.raises(ConnectionLost):
                await link.call(Command(307), 100)

    asyncio.run(main())


def test_addresses_become_the_bytes_of_records() -> None:
    assert encode_host("127.0.0.1", 10911) == bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
    assert encode_host("::1", 1) == bytes(15) + b"\x01\x00\x00\x00\x01"
    assert encode_host("::ffff:10.0.0.1", 1) == bytes((10, 0, 0, 1, 0, 0, 0, 1))
    assert encode_host("fe80::1%eth0", 1)[:2] == b"\xfe\x80"


def test_a_connection_that_floods_leaves_others_their_turn() -> None:
    """One-way requests are never answered, so nothing but the turns holds them up."""
    order: list[str] = []

    class Desk:
        def write_down(self, who: str) -> None:
            order.append(who)

    desk = Desk()

    def note(link: Link, request: Command) -> Command:
        desk.write_down(request.fields["who"])
        return request.answer()

    async def main() -> None:
        async with serving({1: note}, clock=HeldClock()) as (_, _, address):
            flood, other = await Wire.connect(address), await Wire.connect(address)
            count = 5 * REQUESTS_PER_TURN
            with counted_by_turn(desk, "write_down") as served:
                flood.send(*(Command(1, {"who": "flood"}, flag=2) for _ in range(count)))
                other.send(Command(1, {"who": "other"}))
                assert (await other.next()).code == 0
                flood.send(Command(1, {"who": "flood"}, opaque=7))
                assert (await flood.next()).opaque == 7
            assert len(order) == count + 2  # none was lost, none was served twice
            assert served.most <= REQUESTS_PER_TURN + 1
            assert order.index("other") <= 2 * REQUESTS_PER_TURN

    asyncio.run(main())


def test_a_connection_that_floods_and_does_not_read_goes_on_when_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both reasons to stop at once: too much for a turn, and answers that are not read."""
    monkeypatch.setattr(link_module, "WRITE_BUFFER_BYTES_MAX", 64 * 1024)
    monkeypatch.setattr(link_module, "REQUESTS_PER_TURN", 3)

    async def main() -> None:
        async with serving({1: lambda _, request: request.answer(body=bytes(20_000))}) as (bench, _, address):
            wire = await Wire.connect(address)
            wire.reader._transport.pause_reading()  # type: ignore[attr-defined]
            wire.send(*(Command(1, opaque=number) for number in range(800)))
            await eventually(lambda: bench.opened and bench.opened[0].is_congested)
            wire.reader._transport.resume_reading()  # type: ignore[attr-defined]
            assert [(await wire.next()).opaque for _ in range(800)] == list(range(800))

    asyncio.run(main())


def test_a_connection_that_closes_while_others_have_their_turn_is_served_no_more() -> None:
    served = 0

    def count(link: Link, request: Command) -> None:
        nonlocal served
        served += 1

    async def main() -> None:
        async with serving({1: count}, clock=HeldClock()) as (bench, _, address):
            wire = await Wire.connect(address)
            await eventually(lambda: bench.opened)
            (link,) = bench.opened
            frames = encode_frame(Command(1)) * (2 * REQUESTS_PER_TURN)
            link.get_buffer(-1)[: len(frames)] = frames
            link.buffer_updated(len(frames))
            link.abort()
            await eventually(lambda: bench.closed)
            assert served == REQUESTS_PER_TURN
            wire.close()

    asyncio.run(main())


@pytest.mark.parametrize("size", [APART_BYTES - 1, APART_BYTES, 12 * 1024 * 1024])
def test_a_large_answer_arrives_whole_and_the_next_one_behind_it(size: int) -> None:
    body = bytes(range(256)) * (size // 256)

    async def main() -> None:
        handlers = {1: lambda _, request: request.answer(body=body), 2: echo}
        async with serving(handlers) as (_, _, address):
            caller = Caller(SystemClock())
            large, small = await asyncio.gather(
                caller.call(address, Command(1), 5000), caller.call(address, Command(2, body=b"small"), 5000)
            )
            assert large.body == body
            assert small.body == b"small"
            await caller.close()

    asyncio.run(main())


def test_a_link_that_was_given_up_before_its_connection_is_made_reads_nothing() -> None:
    """It would take bytes that it never serves, until there is no memory left to receive into."""

    async def main() -> None:
        bench = Bench({})
        link = Link(Commons(SystemClock(), serves=True), bench)
        link.abort()
        ours, theirs = socket.socketpair()
        with theirs:
            transport, _ = await asyncio.get_running_loop().create_connection(lambda: link, sock=ours)
            assert transport.is_closing()
            await eventually(lambda: not link.is_open)
        assert bench.opened == []

    asyncio.run(main())
