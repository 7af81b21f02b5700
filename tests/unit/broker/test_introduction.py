"""What a broker says of itself: of many topics a slice per turn, once for all who ask, and only what is news."""

import asyncio
import random
import string

import pytest

from bolide.broker import introduction
from bolide.broker.introduction import (
    HEADER_BYTES,
    STEP_TOPICS,
    BrokerIdentity,
    Introduction,
    Snapshot,
    news_since,
)
from bolide.model.config_json import topic_bytes
from bolide.model.data_version import DataVersion
from bolide.model.errors import TableFull
from bolide.model.json_pieces import PIECE_ENTRIES
from bolide.model.limits import FRAME_BYTES_MAX, TOPIC_TABLE_BYTES_MAX, TOPICS_MAX
from bolide.model.steps import at_once
from bolide.model.topic import TopicConfig
from bolide.wire.bodies import registration
from bolide.wire.bodies.registration import HeardRegistration, RegistrationBody
from tests.unit.net.stage import next_turn
from tests.unit.net.turns import counted_by_turn

ME = BrokerIdentity("C", "broker-a", "127.0.0.1:10911")


class Table:
    """Topics with a version."""

    def __init__(self, count: int) -> None:
        self.version = DataVersion(counter=1)
        self.topics = [TopicConfig(f"t{number}") for number in range(count)]

    def __call__(self) -> tuple[DataVersion, list[TopicConfig]]:
        return self.version, list(self.topics)

    def add(self, topic: TopicConfig) -> None:
        self.topics.append(topic)
        self.version = self.version.next(0)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("count", [3 * STEP_TOPICS, 6 * STEP_TOPICS])
def test_what_a_turn_does_for_a_registration_does_not_grow_with_the_topics(
    compressed: bool, count: int
) -> None:
    encode, most = (
        ("format_topic_line", registration.STEP_TOPICS) if compressed else ("topic_as_json", PIECE_ENTRIES)
    )

    async def main() -> None:
        me = Introduction(ME, Table(count), lambda: 6, compressed=compressed)
        with (
            counted_by_turn(introduction, "_masked") as shown,
            counted_by_turn(registration, encode) as encoded,
        ):
            request = await me.whole(await me.snapshot())
        assert shown.total == encoded.total == count + 2
        assert shown.most <= STEP_TOPICS
        assert encoded.most <= most
        body = HeardRegistration.decode(request.body, compressed=compressed, version=request.version)
        assert len(body.topics) == count + 2

    asyncio.run(main())


def test_name_servers_that_are_told_together_share_the_work() -> None:
    async def main() -> None:
        me = Introduction(ME, Table(3 * STEP_TOPICS), lambda: 6)

        async def tell() -> bytes:
            return (await me.whole(await me.snapshot())).body

        with counted_by_turn(registration, "topic_as_json") as encoded:
            bodies = {*await asyncio.gather(tell(), tell(), tell()), await tell()}
        assert len(bodies) == 1
        assert encoded.total == 3 * STEP_TOPICS + 2

    asyncio.run(main())


def test_a_topic_that_comes_while_a_snapshot_is_made_is_in_the_next_one() -> None:
    async def main() -> None:
        table = Table(3 * STEP_TOPICS)
        me = Introduction(ME, table, lambda: 6)
        first = asyncio.create_task(me.snapshot())
        await next_turn()
        table.add(TopicConfig("late"))
        assert "late" not in (await first).topics
        assert "late" in (await me.snapshot()).topics

    asyncio.run(main())


def test_a_changed_permission_is_a_new_snapshot() -> None:
    async def main() -> None:
        permission = 6
        me = Introduction(ME, Table(1), lambda: permission)
        assert (await me.snapshot()).topics["t0"].perm == 6
        permission = 4
        now: Snapshot = await me.snapshot()
        assert (now.topics["t0"].perm, now.permission) == (4, 4)

    asyncio.run(main())


def test_news_are_topics_that_are_new_or_changed_and_none_when_that_does_not_say_it_all() -> None:
    a, b, c = TopicConfig("a"), TopicConfig("b"), TopicConfig("c")
    changed = TopicConfig("b", 8, 8)
    assert at_once(news_since({"a": a}, {"a": TopicConfig("a")}, 2)) == []
    assert at_once(news_since({"a": a, "b": b}, {"a": a, "b": changed, "c": c}, 2)) == [changed, c]
    assert at_once(news_since({"a": a, "b": b}, {"a": a, "b": changed, "c": c}, 1)) is None
    assert at_once(news_since({"a": a, "b": b}, {"a": a}, 2)) is None  # one is gone


@pytest.mark.parametrize("count", [3 * STEP_TOPICS, 9 * STEP_TOPICS])
def test_finding_news_looks_at_a_slice_of_the_topics_with_each_step(count: int) -> None:
    looked = 0

    class Watched(dict[str, TopicConfig]):
        def get(self, name: str, default: object = None) -> TopicConfig | None:  # type: ignore[override]
            nonlocal looked
            looked += 1
            return super().get(name)

        def __contains__(self, name: object) -> bool:
            nonlocal looked
            looked += 1
            return super().__contains__(name)

    told = Watched((f"t{number}", TopicConfig(f"t{number}")) for number in range(count))
    before, most = 0, 0
    for _ in news_since(told, Watched(told), 16):
        most, before = max(most, looked - before), looked
    assert looked >= 2 * (count - STEP_TOPICS)
    assert most <= STEP_TOPICS


def random_names(count: int, length: int) -> list[str]:
    chosen = random.Random(7)
    letters = string.ascii_letters + string.digits + "%|_-"
    return ["".join(chosen.choices(letters, k=length)) for _ in range(count)]


@pytest.mark.parametrize(("length", "packed"), [(20, False), (255, True)])
def test_a_large_table_goes_out_compressed(length: int, packed: bool) -> None:
    async def main() -> None:
        table = Table(0)
        table.topics = [TopicConfig(name) for name in random_names(8_000, length)]
        me = Introduction(ME, table, lambda: 6)
        request = await me.whole(await me.snapshot())
        assert request.fields["compressed"] == ("true" if packed else "false")
        heard = HeardRegistration.decode(request.body, compressed=packed, version=request.version)
        assert len(heard.topics) == 8_002

    asyncio.run(main())


@pytest.mark.parametrize("length", [1, 40, 127, 255])
def test_a_table_that_is_full_fits_into_a_frame(length: int) -> None:
    """Of names that do not compress.  Counted on a part of it: all of it has the same share of the limit."""
    part = 64
    one = TopicConfig("x" * length, 16_384, 16_384, 7)
    count = min(TOPICS_MAX, TOPIC_TABLE_BYTES_MAX // topic_bytes(one)) // part
    topics = tuple(TopicConfig(name, 16_384, 16_384, 7) for name in random_names(count, length))
    packed = len(RegistrationBody(DataVersion(), topics).encode(compressed=True))
    assert packed * part < FRAME_BYTES_MAX - HEADER_BYTES


def test_a_table_that_is_too_large_is_said_so_and_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of another broker's files may be."""
    monkeypatch.setattr(introduction, "FRAME_BYTES_MAX", HEADER_BYTES + 10_000)

    async def main() -> None:
        table = Table(0)
        table.topics = [TopicConfig(name) for name in random_names(300, 60)]
        me = Introduction(ME, table, lambda: 6)
        with pytest.raises(TableFull, match=r"302 topics take .* delete topics"):
            await me.whole(await me.snapshot())

    asyncio.run(main())
