from bolide.store.index_twin import AT_BLANK as AT_BLANK
from bolide.store.index_twin import DONE as DONE
from bolide.store.index_twin import NO_RECORD as NO_RECORD
from bolide.store.index_twin import NO_ROOM as NO_ROOM
from bolide.store.index_twin import find_offsets as find_offsets
from bolide.store.index_twin import index_records as index_records
from bolide.store.index_twin import rebuild_slots as rebuild_slots
from bolide.store.index_twin import record_hashes as record_hashes
