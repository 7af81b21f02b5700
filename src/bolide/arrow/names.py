"""Which columns a table of messages may have, and what is said about one that it has not.

Types go by their names here, so that a schema of Spark and one of Arrow are held against the same list.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from bolide.model.errors import BolideError
from bolide.model.printable import printable_part

SHOWN_MAX = 200
CLOSE = 0.7

TEXT, BYTES = "string", "binary"
TEXTS, PAIRS = "array<string>", "map<string,string>"
MOMENT = "timestamp"
INTEGER, LONG, SHORT = "integer", "long", "short"

_WHOLE = (INTEGER, LONG, SHORT)

ROW_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "topic": (TEXT,),
    "body": (TEXT, BYTES),
    "value": (TEXT, BYTES),
    "tags": (TEXT,),
    "keys": (TEXT, TEXTS),
    "properties": (PAIRS,),
    "delay_level": _WHOLE,
    "deliver_at": (MOMENT, LONG),
    "sharding_key": (TEXT,),
    "queue_id": _WHOLE,
}
"""What rows to send may have, and as which types.  `value` is `body` as Spark's Kafka sink calls it."""


class Field(NamedTuple):
    """A column that is given: `kind` is the name of its type above, or None; `shown` is what its owner calls it."""

    name: str
    kind: str | None
    shown: str


def wrong_with_rows(fields: Collection[Field], no_topic: str | None) -> list[str]:
    """Everything that is wrong with these columns; `no_topic` is what to say when none of them is the topic."""
    wrong = []
    if unknown := [_with_the_nearest(field.name) for field in fields if field.name not in ROW_COLUMNS]:
        wrong.append(
            f"a message has no column {', '.join(unknown)}: leave out or rename; there are {', '.join(ROW_COLUMNS)}"
        )
    for field in fields:
        kinds = ROW_COLUMNS.get(field.name)
        if kinds is not None and field.kind not in kinds:
            wrong.append(f"the column {field.name} is {' or '.join(kinds)}, not {field.shown}: cast it")
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        wrong.append("a column is there twice")
    if "body" in names and "value" in names:
        wrong.append("body and value are the same thing: leave one of them out")
    if "body" not in names and "value" not in names:
        wrong.append("the column body is missing (value is another name for it)")
    if "topic" not in names and no_topic is not None:
        wrong.append(no_topic)
    return wrong


def chosen_names(names: Iterable[str], columns: Iterable[str], error: type[BolideError]) -> list[str]:
    """Some of these columns, as they are spelt; case does not matter, as nowhere in Spark."""
    known = {name.lower(): name for name in columns}
    chosen: list[str] = []
    for name in names:
        found = known.get(name.lower())
        if found is None:
            close = difflib.get_close_matches(name.lower()[:SHOWN_MAX], known, n=1)
            hint = f"did you mean {known[close[0]]}?" if close else f"there are {', '.join(known.values())}"
            raise error(f"columns: a topic has no column {_quoted(name)}; {hint}")
        if found in chosen:
            raise error(f"columns names {found} twice")
        chosen.append(found)
    return chosen


def _with_the_nearest(name: str) -> str:
    close = difflib.get_close_matches(name.lower()[:SHOWN_MAX], ROW_COLUMNS, n=1, cutoff=CLOSE)
    return f"{_quoted(name)} (did you mean {close[0]}?)" if close else _quoted(name)


def _quoted(text: str) -> str:
    return printable_part(repr(text), SHOWN_MAX)
