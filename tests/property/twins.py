"""Compiled modules beside their readable twins, and how to run the same thing through both."""

from collections.abc import Callable
from typing import Any

from bolide.arrow import _columns, columns_twin
from bolide.client import _gather, gather_twin
from bolide.offline import _texts, texts_twin
from bolide.record import _checksum, _codec, _stored, checksum_twin, codec_twin, stored_twin
from bolide.rules.sql import _judge, judge_twin
from bolide.store import (
    _append,
    _collect,
    _ends,
    _index,
    _walk,
    append_twin,
    collect_twin,
    ends_twin,
    index_twin,
    walk_twin,
)
from bolide.store.timer import _filing, filing_twin
from bolide.wire import _frame, _pull, frame_twin, pull_twin

FRAMES: tuple[Any, Any] = (_frame, frame_twin)
PULLS: tuple[Any, Any] = (_pull, pull_twin)
CHECKSUMS: tuple[Any, Any] = (_checksum, checksum_twin)
CODECS: tuple[Any, Any] = (_codec, codec_twin)
APPENDS: tuple[Any, Any] = (_append, append_twin)
COLLECTS: tuple[Any, Any] = (_collect, collect_twin)
WALKS: tuple[Any, Any] = (_walk, walk_twin)
INDEXES: tuple[Any, Any] = (_index, index_twin)
ENDS: tuple[Any, Any] = (_ends, ends_twin)
FILINGS: tuple[Any, Any] = (_filing, filing_twin)
COLUMNS: tuple[Any, Any] = (_columns, columns_twin)
JUDGES: tuple[Any, Any] = (_judge, judge_twin)
GATHERS: tuple[Any, Any] = (_gather, gather_twin)
STORED: tuple[Any, Any] = (_stored, stored_twin)
TEXTS: tuple[Any, Any] = (_texts, texts_twin)


def outcome(action: Callable[..., Any], *parts: Any, **named: Any) -> tuple[str, Any]:
    """What an action gave or which error it raised, so that two can be compared."""
    try:
        return "gave", action(*parts, **named)
    except Exception as error:
        return "raised", (type(error), str(error))
