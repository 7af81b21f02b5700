"""How a running pipeline looks: a table that changes on a terminal, and elsewhere a line now and then."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from bolide.cli.output import can_be_steered, counted, say
from bolide.cli.progress import LOGGED_EVERY

if TYPE_CHECKING:
    from bolide.pipeline.declared.definition import Definition
    from bolide.pipeline.declared.progress import QueryProgress


class Display:
    """A context manager around a run; `show` is called again and again, `tell_end` once behind it."""

    def __init__(self, definition: "Definition | None") -> None:
        """Without a definition nothing is expected of rows."""
        self._actions = {
            (part.name, one.name): one.action.value
            for part in (definition.expecting() if definition is not None else ())
            for one in part.expectations
        }
        self._live: Any = None
        self._calls = 0
        self._logged = -1

    def __enter__(self) -> Self:
        if can_be_steered(sys.stderr):
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, queries: "Sequence[QueryProgress]") -> None:
        if self._live is not None:
            self._live.update(self._table(queries), refresh=True)
            return
        rows = sum(query.rows for query in queries)
        if self._calls % LOGGED_EVERY == 0 and rows != self._logged:
            self._logged = rows
            say("; ".join(_line(query) for query in queries))
        self._calls += 1

    def tell_end(self, queries: "Sequence[QueryProgress]") -> None:
        for query in queries:
            say(f"{query.name}: {counted(query.rows, 'row')} in {_batches(query.batches)}")
        for text in self._unmet(queries):
            say(text)

    def _unmet(self, queries: "Sequence[QueryProgress]") -> list[str]:
        from bolide.pipeline.declared.progress import unmet_of_all

        return [
            f"{part}: {counted(count, 'row')} not as expected: {name} ({self._actions.get((part, name), '')})"
            for (part, name), count in sorted(unmet_of_all(queries).items())
        ]

    def _table(self, queries: "Sequence[QueryProgress]") -> Any:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("SINK")
        for name in ("BATCH", "ROWS", "ROWS/S", "BEHIND"):
            table.add_column(name, justify="right")
        for query in queries:
            table.add_row(
                query.name,
                "-" if query.batch is None else str(query.batch),
                f"{query.rows:,}",
                f"{query.rows_per_second:,.0f}",
                "-" if query.behind is None else f"{query.behind:,}",
            )
        return Group(table, *(Text(line, style="yellow") for line in self._unmet(queries)))


def _batches(number: int) -> str:
    return "1 batch" if number == 1 else f"{number} batches"


def _line(query: "QueryProgress") -> str:
    behind = "" if query.behind is None else f", {query.behind} behind"
    return f"{query.name}: {counted(query.rows, 'row')}, {query.rows_per_second:.0f} rows/s{behind}"
