"""Where a message goes that is not for its readers yet."""

from collections.abc import Mapping

from bolide.broker.diversions import Diversions, set_aside
from bolide.model.pairs import parse_properties
from bolide.store.new_message import NewMessage

MESSAGE = NewMessage("orders", 3, b"x", b"TAGS\x01a\x02", 0, 0, 0, bytes(8))


def test_the_first_rule_that_wants_a_message_has_it() -> None:
    diversions = Diversions()

    def half(message: NewMessage, properties: Mapping[str, str], *, is_taken: bool) -> NewMessage | None:
        return set_aside(message, "half", 0) if "HALF" in properties else None

    def late(message: NewMessage, properties: Mapping[str, str], *, is_taken: bool) -> NewMessage | None:
        return set_aside(message, "late", 1) if "LATE" in properties else None

    diversions.add(half)
    diversions.add(late)
    assert diversions.of(MESSAGE, {}) is MESSAGE
    assert diversions.of(MESSAGE, {"LATE": "1"}).topic == "late"
    assert diversions.of(MESSAGE, {"LATE": "1", "HALF": "1"}).topic == "half"


def test_what_is_set_aside_knows_its_own_queue() -> None:
    aside = set_aside(set_aside(MESSAGE, "first", 1), "second", 2)
    assert (aside.topic, aside.queue_id) == ("second", 2)
    assert parse_properties(aside.properties.decode()) == {
        "TAGS": "a",
        "REAL_TOPIC": "first",
        "REAL_QID": "1",
    }
