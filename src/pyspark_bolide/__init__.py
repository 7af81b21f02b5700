"""Only a `DefaultSource`: Spark looks for one in modules named `pyspark_*` and so finds `rocketmq` by itself.

Always importable, whatever else is missing: Spark has no Python sources at all when one of these modules fails.
"""

from bolide.pipeline.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
