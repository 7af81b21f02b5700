"""Properties as text and as pairs.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled
from bolide.model.pairs_twin import NAME_END, PAIR_END, join_properties

if TYPE_CHECKING or not use_compiled("bolide.model._pairs"):
    from bolide.model.pairs_twin import parse_properties, with_pairs
else:
    from bolide.model._pairs import parse_properties, with_pairs

__all__ = ["NAME_END", "PAIR_END", "join_properties", "parse_properties", "with_pairs"]
