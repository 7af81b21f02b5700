from bolide.store.append_twin import DONE as DONE
from bolide.store.append_twin import NEEDS_GENERAL_PATH as NEEDS_GENERAL_PATH
from bolide.store.append_twin import NEEDS_QUEUE as NEEDS_QUEUE
from bolide.store.append_twin import SEGMENT_FULL as SEGMENT_FULL
from bolide.store.append_twin import Appender as Appender
from bolide.store.append_twin import Detour as Detour
from bolide.store.append_twin import QueueTail as QueueTail
from bolide.store.append_twin import TopicLane as TopicLane
