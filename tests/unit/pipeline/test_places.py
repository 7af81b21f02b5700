"""Places of a stream: the same text for the same place, and what became of a queue since."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue
from bolide.pipeline.places import Mark, Place, Verdict, decode_places, encode_places, judge
from bolide.pipeline.ranges import Ends

NUMBERS = st.integers(0, 2**63 - 1)
PLACES = st.dictionaries(
    st.builds(MessageQueue, st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 30)),
    st.builds(Place, NUMBERS, st.none() | st.builds(Mark, NUMBERS, NUMBERS), st.none() | NUMBERS),
)
READ = Mark(1000, 5000)


@given(PLACES)
def test_places_come_back_as_they_were_and_in_one_order(places: dict[MessageQueue, Place]) -> None:
    text = json.dumps(encode_places(places))
    assert decode_places(json.loads(text)) == places
    backwards = dict(reversed(list(places.items())))
    assert json.dumps(encode_places(backwards)) == text


def test_where_a_batch_begins_is_in_a_place_only_if_it_is_said() -> None:
    """Checkpoints of earlier versions have none."""
    one = MessageQueue("orders", "b", 0)
    without = {"offset": 7, "storeTime": 1000, "logOffset": 5000}
    for place, numbers in ((Place(7, READ), without), (Place(7, READ, 3), without | {"begin": 3})):
        assert encode_places({one: place}) == {"orders": {"b": {"0": numbers}}}
        assert decode_places({"orders": {"b": {"0": numbers}}}) == {one: place}


@pytest.mark.parametrize(
    "text",
    [
        '{"orders": 3}',
        '{"orders": {"b": {"0": 7}}}',
        '{"orders": {"b": {"x": {"offset": 7}}}}',
        '{"orders": {"b": {"0": {"offset": -7}}}}',
        '{"orders": {"b": {"0": {"offset": 1.5}}}}',
        '{"orders": {"b": {"0": {"offset": 1, "storeTime": 4}}}}',
        '{"orders": {"b": {"0": {"offset": 1, "begin": -1}}}}',
    ],
)
def test_a_checkpoint_of_something_else_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(ConfigError, match=r"of another source.*another checkpointLocation"):
        decode_places(json.loads(text))


@pytest.mark.parametrize(
    ("ends", "before", "first", "verdict"),
    [
        (Ends(0, 20), READ, Mark(1, 1), Verdict.SAME),
        (Ends(9, 20), READ, READ, Verdict.SAME),
        (Ends(10, 20), None, Mark(1001, 1), Verdict.SAME),
        (Ends(10, 10), None, None, Verdict.SAME),
        (Ends(11, 20), None, Mark(1001, 1), Verdict.EXPIRED),
        (Ends(0, 20), Mark(1700, 9000), Mark(1500, 8000), Verdict.RECREATED),
        (Ends(0, 4), None, Mark(1500, 8000), Verdict.RECREATED),
        (Ends(0, 0), None, None, Verdict.RECREATED),
        (Ends(0, 20), Mark(1700, 9000), Mark(500, 2000), Verdict.ROLLED_BACK),
        (Ends(0, 4), None, Mark(500, 2000), Verdict.ROLLED_BACK),
    ],
)
def test_what_became_of_a_queue(
    ends: Ends, before: Mark | None, first: Mark | None, verdict: Verdict
) -> None:
    """Left at offset 10, with the message at 9 read."""
    assert judge(Place(10, READ), ends, before, first) is verdict


def test_a_place_without_a_mark_is_believed_while_the_queue_reaches_to_it() -> None:
    assert judge(Place(10), Ends(0, 10), Mark(5, 5), Mark(1, 1)) is Verdict.SAME
    assert judge(Place(10), Ends(0, 9), None, Mark(1, 1)) is Verdict.RECREATED
    assert judge(Place(10), Ends(11, 12), None, Mark(1, 1)) is Verdict.EXPIRED
