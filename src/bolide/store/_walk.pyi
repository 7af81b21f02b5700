from bolide.store.walk_twin import BLANK as BLANK
from bolide.store.walk_twin import LIMIT as LIMIT
from bolide.store.walk_twin import UNSOUND as UNSOUND
from bolide.store.walk_twin import LogWalk as LogWalk
