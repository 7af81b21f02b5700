"""Room in the properties of a message for what the broker itself writes there, now and later.

A message that waits is stored again, by then with more properties.  It is refused when it comes if there is no room for
those: later nobody could be told.  One that has failed is never refused for that: some of its own give way.
"""

from bolide.model.errors import MessageIllegal
from bolide.model.message import PROPERTIES_BYTES_MAX
from bolide.record.layout import RECORD_CHECKSUM_BYTES
from bolide.rules.left_out import fitting


def room_in(properties: bytes, left: int = RECORD_CHECKSUM_BYTES) -> int:
    """How many more bytes there may be, when so many are left for later; negative when there are too many already."""
    return PROPERTIES_BYTES_MAX - left - len(properties)


def check_room(properties: bytes, left: int = RECORD_CHECKSUM_BYTES, *, of: str = "") -> None:
    """`MessageIllegal` unless so many bytes are left; `of` says what is among the properties beside the sender's."""
    if room_in(properties, left) < 0:
        raise MessageIllegal(
            f"the properties have {len(properties)} bytes{of and ' with '}{of};"
            f" {PROPERTIES_BYTES_MAX - left} are allowed"
        )


def with_room(properties: bytes, left: int) -> tuple[bytes, str]:
    """The properties of a failed message with so many bytes left beside a checksum; and what is said of those that gave
    way for that, if some did.
    """
    return fitting(properties, PROPERTIES_BYTES_MAX - RECORD_CHECKSUM_BYTES - left)
