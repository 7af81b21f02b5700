"""Columns into messages.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.arrow.rows_twin import Columns, Numbers, Pairs, Text, Texts
from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.arrow._rows"):
    from bolide.arrow.rows_twin import IdSet, RowEncoder
else:
    from bolide.arrow._rows import IdSet, RowEncoder

__all__ = ["Columns", "IdSet", "Numbers", "Pairs", "RowEncoder", "Text", "Texts"]
