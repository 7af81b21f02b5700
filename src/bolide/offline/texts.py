"""What the frame and the body of records do not tell.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.offline._texts"):
    from bolide.offline.texts_twin import FINE, LAST_UNSEALED, LOST_CHECKSUM, ODD_PROPERTIES, check_texts
else:
    from bolide.offline._texts import FINE, LAST_UNSEALED, LOST_CHECKSUM, ODD_PROPERTIES, check_texts

__all__ = ["FINE", "LAST_UNSEALED", "LOST_CHECKSUM", "ODD_PROPERTIES", "check_texts"]
