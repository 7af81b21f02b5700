"""`bolide pipeline dedup` and `bolide pipeline join`: pipelines that are said in one line.

Both only make a definition (`bolide.pipeline.declared.recipes`) and run it as `bolide pipeline run` runs a file.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli import complete
from bolide.cli.access import access
from bolide.cli.options import DEFAULT_NAMESERVER, Nameserver, TopicName
from bolide.cli.output import write_line
from bolide.cli.pipeline_running import run_definition
from bolide.cli.settings import parse_assignments
from bolide.cli.spark_run import Master, SparkSettings

if TYPE_CHECKING:
    from bolide.pipeline.declared.recipes import Asked, Recipe

To = Annotated[
    str | None,
    typer.Option("--to", metavar="TOPIC", help="The topic that rows go to.", autocompletion=complete.topics),
]
ToParquet = Annotated[
    str | None, typer.Option("--to-parquet", metavar="DIR", help="The folder of Parquet files they go to.")
]
SkipBadRows = Annotated[
    bool,
    typer.Option(
        "--skip-bad-rows",
        help="With --to: leave out what is no message, such as a tag with blanks; else it ends the pipeline.",
    ),
]
Late = Annotated[
    str | None,
    typer.Option(
        "--late", metavar="SPAN", help="How far a queue may be behind another; as --within unless given."
    ),
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="COLUMN", help="The column that tells time; storeTimestamp unless given."),
]
Starting = Annotated[
    str,
    typer.Option("--starting", metavar="WHERE", help="Of a new pipeline: earliest, or latest."),
]
SourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="An option of the topics read, as in docs/spark.md; may be given often.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Of the pipeline; made of the topics unless given."),
]
CheckpointPlace = Annotated[
    str | None,
    typer.Option(
        "--checkpoint", metavar="DIR", help="Where a restart goes on from; ~/.bolide/pipelines/NAME."
    ),
]
Trigger = Annotated[
    str | None, typer.Option("--trigger", metavar="SPAN", help="How often a batch begins; 1 second.")
]
Once = Annotated[
    bool, typer.Option("--once", help="Read all that is there now, then end; else until told to stop.")
]
Print = Annotated[
    bool, typer.Option("--print", help="Write the pipeline as YAML to stdout, and run nothing.")
]
BatchesAsJson = Annotated[bool, typer.Option("--json", help="A line of JSON for every batch, on stdout.")]


def dedup(
    topic: TopicName,
    to: To = None,
    to_parquet: ToParquet = None,
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="key, id, body, or an expression in SQL.")
    ] = "id",
    within: Annotated[
        str, typer.Option("--within", metavar="SPAN", help="How far apart duplicates may be.")
    ] = "1 hour",
    skip_bad_rows: SkipBadRows = False,
    late: Late = None,
    time: Time = None,
    starting: Starting = "earliest",
    source_options: SourceOptions = None,
    name: Name = None,
    checkpoint: CheckpointPlace = None,
    trigger: Trigger = None,
    once: Once = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    printed: Print = False,
    as_json: BatchesAsJson = False,
) -> None:
    """Drop duplicates: the first of all messages that say the same goes on, the others do not.

    By id are those that a producer sent twice, by key and body those that say the same, and a message without a key
    has no duplicates.  Ctrl-C ends it, and the next run goes on.  What is guaranteed: docs/recipes.md.

    [bold]Examples[/bold]

        bolide pipeline dedup orders --to orders-once
        bolide pipeline dedup orders --to-parquet out --by key --within '10 minutes' --once
        bolide pipeline dedup orders --to clean --by "get_json_object(cast(body AS string), '$.order')"
    """
    from bolide.pipeline.declared.recipes import dedup_recipe

    asked = _asked(
        source_options,
        spark_settings,
        nameserver=nameserver,
        within=within,
        to_topic=to,
        to_parquet=to_parquet,
        skip_bad_rows=skip_bad_rows,
        late=late,
        time=time,
        starting=starting,
        name=name,
        trigger=trigger,
    )
    recipe = dedup_recipe(topic, by, asked)
    _run(recipe, printed, once=once, master=master, checkpoint=checkpoint, as_json=as_json)


def join(
    left: Annotated[str, typer.Argument(metavar="LEFT", autocompletion=complete.topics)],
    right: Annotated[str, typer.Argument(metavar="RIGHT", autocompletion=complete.topics)],
    on: Annotated[
        str, typer.Option("--on", metavar="CONDITION", help="key, a column of both, or a condition in SQL.")
    ],
    within: Annotated[str, typer.Option("--within", metavar="SPAN", help="How far apart a pair may be.")],
    to: To = None,
    to_parquet: ToParquet = None,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="inner, or left: what has no match goes on alone.")
    ] = "inner",
    select: Annotated[
        str | None, typer.Option("--select", metavar="SQL", help="What a row has, as behind SELECT.")
    ] = None,
    skip_bad_rows: SkipBadRows = False,
    late: Late = None,
    time: Time = None,
    starting: Starting = "earliest",
    source_options: SourceOptions = None,
    name: Name = None,
    checkpoint: CheckpointPlace = None,
    trigger: Trigger = None,
    once: Once = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    printed: Print = False,
    as_json: BatchesAsJson = False,
) -> None:
    """Join two topics: every pair of messages that belong together and are no further apart than --within.

    In SQL the sides have the names of their topics, with _ for what is no letter or digit.  Without --select a row
    of Parquet has a struct for each side, and a message is JSON of both.  What is guaranteed: docs/recipes.md.

    [bold]Examples[/bold]

        bolide pipeline join orders payments --on key --within '10 minutes' --to paid
        bolide pipeline join orders payments --on key --within 1h --type left --to-parquet out --once
        bolide pipeline join orders payments --on 'orders.tags = payments.tags' --within 1m --to both \\
            --select 'concat(orders.body, payments.body) AS body'
    """
    from bolide.pipeline.declared.recipes import join_recipe

    asked = _asked(
        source_options,
        spark_settings,
        nameserver=nameserver,
        within=within,
        to_topic=to,
        to_parquet=to_parquet,
        skip_bad_rows=skip_bad_rows,
        late=late,
        time=time,
        starting=starting,
        name=name,
        trigger=trigger,
    )
    recipe = join_recipe(left, right, on, kind, select, asked)
    _run(recipe, printed, once=once, master=master, checkpoint=checkpoint, as_json=as_json)


def _asked(source_options: list[str] | None, spark_settings: list[str] | None, **said: Any) -> "Asked":
    from bolide.pipeline.declared.recipes import Asked

    return Asked(
        **said,
        options=parse_assignments(source_options or (), "--option"),
        settings=parse_assignments(spark_settings or (), "--spark"),
    )


def _run(recipe: "Recipe", printed: bool, **how: Any) -> None:
    from bolide.pipeline.declared.access import with_access
    from bolide.pipeline.declared.recipes import definition_of

    definition = definition_of(recipe, Path.cwd())
    if not printed:
        run_definition(with_access(definition, access()), **how)
        return
    import yaml  # with the extra `spark`

    text: str = yaml.safe_dump(dict(recipe), sort_keys=False, allow_unicode=True, width=100)
    for line in text.splitlines():
        write_line(line)
