"""Columns into messages.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled
from bolide.pipeline.rows_twin import Columns, Numbers, Pairs, Text, Texts

if TYPE_CHECKING or not use_compiled("bolide.pipeline._rows"):
    from bolide.pipeline.rows_twin import IdSet, RowEncoder
else:
    from bolide.pipeline._rows import IdSet, RowEncoder

__all__ = ["Columns", "IdSet", "Numbers", "Pairs", "RowEncoder", "Text", "Texts"]
