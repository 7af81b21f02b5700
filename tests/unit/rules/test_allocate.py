"""Shares of a group: the same for every member, every queue to exactly one, whatever the strategy."""

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.errors import ConfigError, StrategyFailed
from bolide.model.offsets import MessageQueue
from bolide.rules.allocate import Strategy, strategy
from bolide.rules.allocate.hash_ring import ConsistentHashStrategy
from bolide.rules.allocate.machine_rooms import MachineRoomNearbyStrategy, MachineRoomStrategy
from bolide.rules.allocate.plain import ConfigStrategy

ROOMS = ("east", "west", "far")


def queues(count: int, *brokers: str) -> list[MessageQueue]:
    names = brokers or ("broker-a",)
    return [MessageQueue("T", name, number) for name in names for number in range(count)]


def members(count: int) -> list[str]:
    return [f"10.0.0.{number}@1" for number in range(count)]


def shares(chosen: str | Strategy, count: int, member_count: int) -> list[list[int]]:
    asked = strategy(chosen)
    everybody = members(member_count)
    return [[queue.queue_id for queue in asked(queues(count), everybody, me)] for me in everybody]


def room_of_broker(queue: MessageQueue) -> str:
    return queue.broker_name.partition("@")[0]


def room_of_member(member: str) -> str:
    return member.partition("-")[0]


NEARBY = MachineRoomNearbyStrategy(room_of_broker, room_of_member)
COMPLETE: list[str | Strategy] = [
    "averagely",
    "circle",
    "consistent_hash",
    ConsistentHashStrategy(100),
    MachineRoomStrategy(ROOMS),
    NEARBY,
    MachineRoomNearbyStrategy(room_of_broker, room_of_member, "circle"),
    MachineRoomNearbyStrategy(room_of_broker, room_of_member, ConsistentHashStrategy(3)),
]
"""Those that leave no queue of a broker `room@name` to nobody."""


@pytest.mark.parametrize(
    ("chosen", "count", "member_count", "expected"),
    [
        ("averagely", 8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        ("averagely", 4, 2, [[0, 1], [2, 3]]),
        ("averagely", 2, 4, [[0], [1], [], []]),
        ("averagely", 3, 3, [[0], [1], [2]]),
        ("averagely", 7, 2, [[0, 1, 2, 3], [4, 5, 6]]),
        ("averagely", 0, 2, [[], []]),
        ("circle", 8, 3, [[0, 3, 6], [1, 4, 7], [2, 5]]),
        ("circle", 2, 4, [[0], [1], [], []]),
        ("circle", 0, 2, [[], []]),
    ],
)
def test_shares_are_those_of_the_original(
    chosen: str, count: int, member_count: int, expected: list[list[int]]
) -> None:
    """CO-03."""
    assert shares(chosen, count, member_count) == expected


def test_machine_rooms_share_what_divides_in_runs_and_the_rest_one_by_one() -> None:
    """CO-03: only brokers of the rooms that were named are read."""
    share = strategy(MachineRoomStrategy({"east", "west"}))
    known = queues(4, "east@1", "far@1", "west@1", "west@1@2", "west", "west@", "@east")
    ranked = members(3)
    assert [
        [f"{queue.broker_name}:{queue.queue_id}" for queue in share(known, ranked, me)] for me in ranked
    ] == [
        ["east@1:0", "east@1:1", "west@1:2"],
        ["east@1:2", "east@1:3", "west@1:3"],
        ["west@1:0", "west@1:1"],
    ]


def test_members_near_a_broker_have_its_queues_and_all_have_those_of_a_room_without_members() -> None:
    """CO-03."""
    share = strategy(NEARBY)
    known = queues(2, "east@1", "far@1", "west@1")
    ranked = ["east-1", "east-2", "west-1"]
    assert [
        [f"{queue.broker_name}:{queue.queue_id}" for queue in share(known, ranked, me)] for me in ranked
    ] == [
        ["east@1:0", "far@1:0"],
        ["east@1:1", "far@1:1"],
        ["west@1:0", "west@1:1"],
    ]


def test_a_member_has_the_queues_that_it_was_given_as_far_as_they_exist() -> None:
    """CO-03."""
    given_queues = [MessageQueue("T", "broker-a", 3), MessageQueue("T", "broker-a", 0)]
    elsewhere = [MessageQueue("T", "broker-b", 0), MessageQueue("other", "broker-a", 1)]
    share = strategy(ConfigStrategy([*given_queues, *elsewhere, *given_queues]))
    assert share(queues(4), members(2), members(2)[1]) == given_queues
    assert share([MessageQueue("third", "broker-a", 0)], members(1), members(1)[0]) == []


def test_a_retry_topic_that_nobody_has_written_down_is_shared_averagely() -> None:
    retries = [MessageQueue("%RETRY%g", "broker-a", number) for number in range(2)]
    unsaid = strategy(ConfigStrategy(queues(1)))
    assert [unsaid(retries, members(2), me) for me in members(2)] == [retries[:1], retries[1:]]
    said = strategy(ConfigStrategy(retries[1:]))
    assert [said(retries, members(2), me) for me in members(2)] == [retries[1:], retries[1:]]


@pytest.mark.parametrize("chosen", ["consistent_hash", ConsistentHashStrategy(1), ConsistentHashStrategy(50)])
def test_a_member_that_leaves_a_ring_moves_only_its_own_queues(chosen: str | Strategy) -> None:
    """CO-03."""
    share, ranked = strategy(chosen), members(7)
    for gone in ranked:
        left = [member for member in ranked if member != gone]
        for me in left:
            assert set(share(queues(64), ranked, me)) <= set(share(queues(64), left, me))


def test_the_places_on_the_ring_are_those_of_the_original() -> None:
    """Seen with AllocateMessageQueueConsistentHash of 5.5.0; test_strategies.py of the interop tests asks it anew."""
    assert shares("consistent_hash", 12, 3) == [[1, 2, 6, 8], [0, 4, 5, 7, 9, 10, 11], [3]]


@pytest.mark.parametrize("chosen", ["averagely", "circle", "consistent_hash", *COMPLETE[3:]], ids=str)
def test_who_is_not_a_member_gets_nothing(chosen: str | Strategy) -> None:
    assert strategy(chosen)(queues(4, "east@1"), ["east-1", "west-1"], "east-2") == []


def test_the_order_in_which_lists_arrive_does_not_matter() -> None:
    mixed = [MessageQueue("T", name, number) for name in ("b", "a") for number in (1, 0)]
    assert strategy("averagely")(mixed, ["y", "x", "x"], "x") == [
        MessageQueue("T", "a", 0),
        MessageQueue("T", "a", 1),
    ]


def test_members_stand_in_the_order_in_which_java_sorts_texts() -> None:
    """By units of UTF-16: a character of two units comes before one that has a smaller number."""
    high, low = "10.0.0.1@\uff5e", "10.0.0.1@\U0001f600"
    assert sorted([high, low]) == [high, low]
    assert strategy("averagely")(queues(2), [high, low], low) == queues(1)


_MEMBERS = st.sets(
    st.builds("{}-{}".format, st.sampled_from(["east", "west", "south"]), st.integers(0, 99)),
    min_size=1,
    max_size=20,
)
_QUEUES = st.sets(
    st.builds(
        MessageQueue,
        st.just("T"),
        st.builds("{}@{}".format, st.sampled_from(ROOMS), st.integers(0, 2)),
        st.integers(0, 15),
    ),
    max_size=48,
)


@pytest.mark.parametrize("chosen", COMPLETE, ids=str)
@given(known=_QUEUES, everybody=_MEMBERS, seed=st.integers(0, 99))
def test_every_queue_has_exactly_one_owner_in_whatever_order_members_hear_of_it(
    chosen: str | Strategy, known: set[MessageQueue], everybody: set[str], seed: int
) -> None:
    """CO-04."""
    share, chance = strategy(chosen), random.Random(seed)
    owned = [
        queue
        for me in everybody
        for queue in share(
            chance.sample(sorted(known), len(known)), chance.sample(sorted(everybody), len(everybody)), me
        )
    ]
    assert sorted(owned) == sorted(known)


@pytest.mark.parametrize("chosen", ["averagely", "circle", MachineRoomStrategy(ROOMS)], ids=str)
@given(known=_QUEUES, everybody=_MEMBERS)
def test_shares_differ_by_one_at_most(
    chosen: str | Strategy, known: set[MessageQueue], everybody: set[str]
) -> None:
    """CO-04."""
    sizes = [len(strategy(chosen)(known, everybody, me)) for me in everybody]
    assert max(sizes) - min(sizes) <= 1


# ---- strategies of one's own, and mistakes -----------------------------------------------------------------


def test_a_function_of_ones_own_gets_both_lists_in_order_and_its_answer_counts() -> None:
    asked: list[tuple[Sequence[MessageQueue], Sequence[str], str]] = []

    def mine(known: Sequence[MessageQueue], everybody: Sequence[str], me: str) -> Sequence[MessageQueue]:
        asked.append((known, everybody, me))
        return known[:1]

    assert strategy(mine)(reversed(queues(3)), ["b", "a"], "b") == queues(1)
    assert asked == [(queues(3), ["a", "b"], "b")]
    assert strategy(strategy(mine))(queues(3), ["b", "a"], "b") == queues(1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda q, m, me: None,
            "gives a list of some of the queues that it is given, and gave NoneType None",
        ),
        (lambda q, m, me: iter(q), "and gave list_iterator"),
        (lambda q, m, me: {0, 1}, "and gave set"),
        (lambda q, m, me: [q[0], 1], "gave 1, which is none of the 4 queues"),
        (lambda q, m, me: [[]], "gave [], which is none of the 4 queues"),
        (
            lambda q, m, me: [MessageQueue("T", "x", 0)],
            "broker_name='x', queue_id=0), which is none of the 4",
        ),
        (lambda q, m, me: [q[0], q[1], q[0]], "gave T@broker-a:0 more than once"),
        (lambda q, m, me: q[99:][0], "raised IndexError"),
    ],
)
def test_an_answer_that_is_no_list_of_the_queues_is_an_error_of_its_own(
    answer: Callable[..., Sequence[MessageQueue]], said: str
) -> None:
    with pytest.raises(StrategyFailed) as raised:
        strategy(answer)(queues(4), ["a"], "a")
    assert said in str(raised.value)


@pytest.mark.parametrize("room", [None, "", 7])
def test_a_room_that_nobody_can_name_is_an_error_of_its_own(room: object) -> None:
    lost = MachineRoomNearbyStrategy(room_of_broker, lambda member: room)  # type: ignore[arg-type, return-value]
    with pytest.raises(StrategyFailed, match=r"member_room gives the name of a room, and gave .* for east-1"):
        strategy(lost)(queues(4), ["east-1"], "east-1")


async def _later(known: object, everybody: object, me: object) -> list[MessageQueue]:
    return []


class _Later:
    async def __call__(self, known: object, everybody: object, me: object) -> list[MessageQueue]:
        return []


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("average", "no strategy 'average': is 'averagely' meant?"),
        ("AVG_BY_CIRCLE", "is 'circle' meant?"),
        ("consistent-hash", "is 'consistent_hash' meant?"),
        ("", "There are averagely, circle, consistent_hash, config, machine_room, machine_room_nearby"),
        ("x" * 10_000, "There are averagely"),
        ("config", "must be told something: give strategy=ConfigStrategy(queues)"),
        ("machine_room", "MachineRoomStrategy(rooms)"),
        ("machine_room_nearby", "MachineRoomNearbyStrategy(broker_room, member_room)"),
        (None, "strategy is the name of a strategy"),
        (7, "or a function that takes the queues, the members and the own id, not int 7"),
        (_later, "not function"),
        (_Later(), "not _Later"),
        (_Later, "as in _Later(...), and not the class"),
        (MachineRoomStrategy, "as in MachineRoomStrategy(...), and not the class"),
    ],
)
def test_what_is_no_strategy_is_said_where_it_is_given(chosen: object, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        strategy(chosen)  # type: ignore[arg-type]
    assert said in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ConfigStrategy([("T", "broker-a", 0)]), "not of ('T', 'broker-a', 0)"),  # type: ignore[list-item]
        (lambda: ConfigStrategy(7), "not of 7"),  # type: ignore[arg-type]
        (lambda: ConfigStrategy("T"), "not of 'T'"),  # type: ignore[arg-type]
        (lambda: MachineRoomStrategy("east"), "rooms is a set of names"),
        (lambda: MachineRoomStrategy([]), "rooms is a set of names"),
        (lambda: MachineRoomStrategy([1]), "not [1]"),  # type: ignore[list-item]
        (lambda: MachineRoomNearbyStrategy("east", room_of_member), "broker_room is a function"),  # type: ignore[arg-type]
        (lambda: MachineRoomNearbyStrategy(room_of_broker, None), "member_room is a function"),  # type: ignore[arg-type]
        (lambda: MachineRoomNearbyStrategy(room_of_broker, room_of_member, "x"), "no strategy 'x'"),
        (lambda: ConsistentHashStrategy(0), "virtual_nodes is a whole number from 1 to 1000, not 0"),
        (lambda: ConsistentHashStrategy(True), "not True"),
    ],
)
def test_a_strategy_says_what_it_must_be_told(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make()
    assert said in str(raised.value)
