"""Records into Arrow columns.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.arrow._columns"):
    from bolide.arrow.columns_twin import ColumnBuilder, LogFilter
else:
    from bolide.arrow._columns import ColumnBuilder, LogFilter

__all__ = ["ColumnBuilder", "LogFilter"]
