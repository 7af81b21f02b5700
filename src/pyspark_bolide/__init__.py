"""Only a `DefaultSource`: Spark looks for one in modules named `pyspark_*` and so finds `rocketmq` by itself."""

from bolide.pipeline.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
