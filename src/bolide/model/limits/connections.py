"""What a connection may bring, keep and leave unread."""

from typing import Final

from bolide.model.limit import KIB, MIB, Limit, Where

# Because of it the first byte of a frame is 0 or 1: the scanners of the hot path rely on that.
FRAME_BYTES_MAX: Final = Limit(
    16 * MIB, Where.CONNECTION, "bytes of one frame", "the connection is closed, as by the original"
)
# Every legal request fits: a message's 32,767 bytes of properties may be written as six bytes each (\u0001), and so may
# the 32,768 characters of a subscription.
HEADER_BYTES_MAX: Final = Limit(
    256 * KIB,
    Where.CONNECTION,
    "bytes of a request's header, its remark included",
    "the connection is closed",
)
HEADER_FIELDS_MAX: Final = Limit(
    128, Where.CONNECTION, "fields of a header; real clients send 20", "the connection is closed"
)
DIALECT_BYTES_MAX: Final = Limit(
    16 * KIB,
    Where.CONNECTION,
    "bytes of a request's body in Java's dialect of JSON (map keys without quotes), which is read slowly",
    "the request is refused; standard JSON may fill its frame",
)
KEPT_BYTES_MAX: Final = Limit(
    128 * MIB,
    Where.CONNECTION,
    "bytes kept for all connections together: beginnings of frames, answers that nobody reads, waiting requests",
    "those that bring nothing and have most are closed, those that keep nothing never",
)
# How much one socket read may bring: smaller frames come whole, or wait in part with their connection.
INTAKE_BYTES: Final = 256 * KIB
LARGE_FRAME_S_MAX: Final = 8
LARGE_FRAMES_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.CONNECTION,
    f"bytes of frames above {INTAKE_BYTES // KIB} KiB that are being received at the same time",
    f"further ones wait; meanwhile who would need more than {LARGE_FRAME_S_MAX} seconds for its frame is closed",
)
ORDINARY_FRAME_BYTES_MAX: Final = Limit(
    4 * MIB + HEADER_BYTES_MAX,
    Where.CONNECTION,
    "bytes of a frame that has a share in three quarters of that room: a message of the usual maxMessageSize fits",
    "it has a share in the last quarter, where larger ones wait for each other alone",
)
IN_FLIGHT_MAX: Final = Limit(
    100_000,
    Where.CONNECTION,
    "requests that wait for something, of all connections",
    "a host's are refused as busy when it has as many as stay free for others",
)
IN_FLIGHT_OF_ONE_MAX: Final = Limit(
    1024,
    Where.CONNECTION,
    "requests of one connection that wait for something",
    "it is not read from meanwhile",
)
LARGE_ANSWERS_MAX: Final = Limit(
    16, Where.CONNECTION, "large answers in the making for one connection", "further ones are refused as busy"
)
LARGE_ANSWER_SMALL_BYTES: Final = 256 * KIB
LARGE_ANSWERS_AT_ONCE: Final = Limit(
    4,
    Where.CONNECTION,
    f"answers in the making of which {LARGE_ANSWER_SMALL_BYTES // KIB} KiB are there already, of all connections",
    "further ones go on when one of them is whole; shorter ones do not wait for them",
)
LARGE_ANSWERS_BEGUN_MAX: Final = Limit(
    32, Where.CONNECTION, "answers in the making of which less is there", "further ones begin after them"
)
# A frame that its reader takes; the rest is for the header.
LARGE_ANSWER_BYTES_MAX: Final = Limit(
    FRAME_BYTES_MAX - 64 * KIB,
    Where.CONNECTION,
    "bytes of a list of topics, groups or the like",
    "the request is answered with an error that says so",
)
WRITE_BUFFER_BYTES_MAX: Final = Limit(
    4 * MIB,
    Where.CONNECTION,
    "bytes of answers that a connection has not read",
    "it is not read from meanwhile",
)
TURN_MS_MAX: Final = Limit(
    2,
    Where.CONNECTION,
    "milliseconds that requests of all connections take in one go, plain sends aside",
    "further ones wait, and have as many in each turn of the loop; first who has used least, every fourth time who has"
    " waited longest",
)
TURN_BYTES_MAX: Final = Limit(
    512 * KIB,
    Where.CONNECTION,
    "bytes that connections which bring many at once bring together in one turn of the loop",
    "they wait, and bring as many in each turn; first who has used least",
)
REQUESTS_PER_TURN: Final = Limit(
    64, Where.CONNECTION, "requests of a connection in one go, plain sends aside", "others have their turn"
)
IDLE_MS_MAX: Final = Limit(
    120_000,
    Where.CONNECTION,
    "milliseconds in which a connection has brought no whole frame, or has read none of what waits for it",
    "it is closed, whatever is pending",
)
CALLS_MAX: Final = Limit(
    65_536, Where.CONNECTION, "calls of ours that wait for an answer on one connection", "a further one fails"
)
CONNECTIONS_MAX: Final = Limit(16_384, Where.CONNECTION, "open connections", "new ones are closed")
PASSES_MAX: Final = Limit(
    4096,
    Where.CONNECTION,
    "answers of the guard that are remembered for one connection; none where everybody may do everything",
    "they are asked for again",
)
