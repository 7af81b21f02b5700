from bolide.record.checksum_twin import ABSENT as ABSENT
from bolide.record.checksum_twin import DAMAGED as DAMAGED
from bolide.record.checksum_twin import SOUND as SOUND
from bolide.record.checksum_twin import masked_crc32 as masked_crc32
from bolide.record.checksum_twin import record_checksum as record_checksum
from bolide.record.checksum_twin import seal_record as seal_record
