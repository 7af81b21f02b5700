"""Rows that no write takes are found before it, and a replay goes on without them."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.arrow.rows import RowEncoder
from bolide.model.message import PROPERTIES_BYTES_MAX
from bolide.pipeline import refused as module
from bolide.pipeline.refused import refused
from bolide.pipeline.replay.folder import Done, ReplayFolder
from bolide.pipeline.replay.outgoing import Sieve
from bolide.pipeline.replay.plan import NAMED_MAX

SCHEMA = pa.schema(
    {
        "body": pa.binary(),
        "tags": pa.string(),
        "keys": pa.list_(pa.string()),
        "properties": pa.map_(pa.string(), pa.string()),
    }
)
TAG_REFUSED = "its tags is one word: no consumer could ask for a tag that is *, or has a blank or || in it"


def copies(*tags: str, keys: str = "k", city: str = "") -> pa.RecordBatch:
    """Their places are their numbers."""
    rows = [
        {
            "body": b"%d" % number,
            "tags": tag,
            "keys": [keys],
            "properties": [
                ("REPLAY_OF", f"id-{number}"),
                ("REPLAY_FROM", f"orders broker-a 0 {number}"),
                ("city", city),
            ],
        }
        for number, tag in enumerate(tags)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def test_rows_that_no_write_takes_are_found_with_the_reason() -> None:
    assert refused(copies("paid", "open"), "copy") == {}
    assert refused(copies("paid", "A B", "open", "a||b", "*"), "copy") == dict.fromkeys(
        (1, 3, 4), TAG_REFUSED
    )
    assert refused(copies("paid", keys="a\tb"), "copy")[0].startswith("its keys has a blank in a key")
    large = refused(copies("paid", city="x" * PROPERTIES_BYTES_MAX), "copy")[0]
    assert large.startswith(f"its properties takes more than {PROPERTIES_BYTES_MAX} bytes")


@given(st.lists(st.sampled_from(["paid", "A B", "open", "*"]), max_size=40), st.booleans())
def test_rows_are_refused_together_as_they_are_alone(tags: list[str], of_topics: bool) -> None:
    batch = copies(*tags)
    if of_topics:
        topics = [None if tag == "*" else ("a", "b", "no topic")[len(tag) % 3] for tag in tags]
        batch = batch.append_column("topic", pa.array(topics, pa.string()))
    topic = None if of_topics else "copy"
    alone = {row: refused(batch.slice(row, 1), topic) for row in range(len(tags))}
    assert refused(batch, topic) == {row: found[0] for row, found in alone.items() if found}


def test_one_row_that_is_refused_does_not_cost_an_encoder_for_each_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[RowEncoder] = []

    def encoder(prefix: str) -> RowEncoder:
        made.append(RowEncoder(prefix))
        return made[-1]

    monkeypatch.setattr(module, "RowEncoder", encoder)
    rows = 4096
    for wrong in ({0}, {1777}, {rows - 1}, {5, 2000, 4000}):
        made.clear()
        tags = ["A B" if row in wrong else "paid" for row in range(rows)]
        assert refused(copies(*tags), "copy") == dict.fromkeys(sorted(wrong), TAG_REFUSED)
        assert len(made) <= 1 + 2 * len(wrong) * rows.bit_length()


def test_a_number_of_a_queue_is_no_reason_to_leave_a_row_out() -> None:
    far = copies("paid", "A B").append_column("queue_id", pa.array([9_999, 0], pa.int32()))
    assert refused(far, "copy") == {1: TAG_REFUSED}


def test_a_sieve_lets_the_others_through_and_names_the_first_that_it_holds_back() -> None:
    sieve = Sieve()
    batches = [copies("paid", "A B", "open"), copies("paid"), copies(*["*"] * NAMED_MAX)]
    passed = [row for batch in sieve.sift(iter(batches), "copy") for row in batch.to_pylist()]
    assert [(row["tags"], row["body"]) for row in passed] == [("paid", b"0"), ("open", b"2"), ("paid", b"0")]
    assert (sieve.refused, len(sieve.named)) == (1 + NAMED_MAX, NAMED_MAX)
    assert sieve.named[0] == f"id-1 (orders broker-a 0 1): {TAG_REFUSED}"


def test_a_folder_keeps_what_was_refused(tmp_path: Path) -> None:
    folder = ReplayFolder.of("r1", str(tmp_path))
    folder.path.mkdir()
    done = Done().plus(5, 0, 2, ["a", "b"]).plus(1, 1).plus(0, 0, 30, ["c"] * 30)
    folder.note(done)
    assert folder.done() == done
    assert (done.refused, len(done.named), done.named[:3]) == (32, NAMED_MAX, ("a", "b", "c"))
    (folder.path / "done.json").write_text('{"slices": 1, "sent": 5, "stored_before": 0}')
    assert folder.done() == Done(1, 5, 0)
