from bolide.offline.texts_twin import FINE as FINE
from bolide.offline.texts_twin import LAST_UNSEALED as LAST_UNSEALED
from bolide.offline.texts_twin import LOST_CHECKSUM as LOST_CHECKSUM
from bolide.offline.texts_twin import ODD_PROPERTIES as ODD_PROPERTIES
from bolide.offline.texts_twin import check_texts as check_texts
