"""Whether topics are there that a new pipeline reads: asked before Spark is started, which takes long to say no."""

from bolide.pipeline.cluster import Cluster
from bolide.pipeline.declared.definition import TOPIC_FORMAT, Definition
from bolide.pipeline.option_table import Use
from bolide.pipeline.options import parse_options


async def check_topics(definition: Definition) -> None:
    """`NoNameServer` where nobody answers, `RouteNotFound` with the nearest name for a topic that no broker has."""
    for source in definition.sources.values():
        if source.format == TOPIC_FORMAT:
            use = Use.STREAM if source.is_stream else Use.BATCH
            async with Cluster(parse_options(source.options, use)) as cluster:
                await cluster.queues()
