"""The checksums of a record.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.record._checksum"):
    from bolide.record.checksum_twin import ABSENT, DAMAGED, SOUND, masked_crc32, record_checksum, seal_record
else:
    from bolide.record._checksum import ABSENT, DAMAGED, SOUND, masked_crc32, record_checksum, seal_record

__all__ = ["ABSENT", "DAMAGED", "SOUND", "masked_crc32", "record_checksum", "seal_record"]
