"""Only a `DefaultSource`, as in `pyspark_bolide`: a module can have one, so the format `rocketmq-store` has its own."""

from bolide.pipeline.store_source import RocketMQStoreSource as DefaultSource

__all__ = ["DefaultSource"]
