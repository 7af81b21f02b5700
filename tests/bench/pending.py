"""Very many timed messages that wait: what they cost in memory, in speed, and at a restart."""

import json
import socket
import struct
import time

from tests.bench.durable import PROBE_SECONDS
from tests.bench.features import FAR_MS, TIMER_TOPIC, send_with_a_time
from tests.bench.scale import Scale
from tests.bench.sides import Side, Untrustworthy
from tests.bench.workloads import BODY_BYTES, Figures
from tests.peers import frames
from tests.peers.server import READY_SECONDS
from tests.peers.waiting import wait_until

GET_BROKER_RUNTIME_INFO = 28
SPREAD_MS = 24 * 3600 * 1000
IN_FLIGHT = 512
KNOWN_SECONDS = 120
RECEIVE_BYTES = 1 << 18


def many_that_wait(side: Side, scale: Scale) -> Figures:
    """Send rate and memory with none waiting and with all of them; then the server starts again."""
    before = send_with_a_time(side, scale)["per_second"]
    _fill(side, scale.pending_messages)
    _wait_until_known(side, scale.pending_messages)
    after = send_with_a_time(side, scale)["per_second"]
    memory = side.server.rss_anon_bytes() / 1e6
    waiting = side.stored(TIMER_TOPIC)
    side.server.stop()
    side.server.launch()
    started = side.server.processes[0].started_at
    wait_until(
        lambda: frames.try_send(side.server.nameserver, side.server.broker, "first"),
        READY_SECONDS,
        "no send is acknowledged",
        PROBE_SECONDS,
    )
    seconds = time.monotonic() - started
    _wait_until_known(side, waiting)
    return {"after_over_before": after / before, "rss_anon_mb": memory, "restart_seconds": seconds}


def _fill(side: Side, count: int) -> None:
    """Over a bare socket, with frames that differ in few bytes: the server has the time, not the sender."""
    topic, now_ms = side.topic(), time.time_ns() // 1_000_000
    frame = _frame_with_holes(topic)
    host, _, port = side.server.broker.rpartition(":")
    with socket.create_connection((host, int(port)), frames.TIMEOUT_SECONDS) as connection:
        answered, left = 0, b""
        for first in range(0, count, IN_FLIGHT):
            numbers = range(first, min(count, first + IN_FLIGHT))
            times = (now_ms + FAR_MS + number * SPREAD_MS // count for number in numbers)
            connection.sendall(
                b"".join(frame % (number, at_ms) for number, at_ms in zip(numbers, times, strict=True))
            )
            while answered < numbers.stop:
                done, left = _count_answers(left + connection.recv(RECEIVE_BYTES))
                answered += done


def _frame_with_holes(topic: str) -> bytes:
    """A send to which the number and the time of a message are yet to be given; they are always as long."""
    key, at = "%(key)", "%(at)"
    properties = f"UNIQ_KEY\x01{key}\x02TIMER_DELIVER_MS\x01{at}\x02"
    fields = {**frames.send_fields(topic), "i": properties}
    header = json.dumps(
        {"code": frames.SEND_MESSAGE_V2, "language": "JAVA", "version": 453, "opaque": 1, "flag": 0}
        | {"extFields": fields}
    ).replace("%", "%%")
    header = header.replace("%%(key)", "7F000001061DC418626B517F%08X").replace("%%(at)", "%013d")
    encoded, body = header.encode(), b"x" * BODY_BYTES
    length = len(encoded % (0, 0))
    return struct.pack(">ii", 4 + length + len(body), length).replace(b"%", b"%%") + encoded + body


def _count_answers(received: bytes) -> tuple[int, bytes]:
    """How many whole answers there are, all of them good, and what is left of the next."""
    at = done = 0
    while len(received) - at >= 4:
        (length,) = struct.unpack_from(">i", received, at)
        if len(received) - at - 4 < length:
            break
        if b'"code":0,' not in received[at : at + 4 + length]:
            raise Untrustworthy(f"a timed message was refused: {received[at : at + 4 + length]!r}")
        at += 4 + length
        done += 1
    return done, received[at:]


def _wait_until_known(side: Side, count: int) -> None:
    """Until the timer has gone over all of them."""
    with frames.Connection(side.server.broker) as connection:

        def known() -> bool:
            table = json.loads(connection.ask(GET_BROKER_RUNTIME_INFO).body)["table"]
            return table["timerOffsetBehind"] == "0" and int(table["timerCongestNum"]) >= count

        wait_until(known, KNOWN_SECONDS, f"the timer does not know {count} messages")
