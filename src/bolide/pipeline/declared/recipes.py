"""Pipelines that a command says in one line: duplicates dropped, and two topics joined.

A recipe is what a YAML file would say, as a mapping, and is read and checked as one: `definition_of` gives the
definition, and whoever wants to go on from there writes the mapping to a file.  Nothing is run here.
"""

import re
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bolide.model.errors import ConfigError
from bolide.pipeline.declared.check import check_definition
from bolide.pipeline.declared.definition import STORED, Definition
from bolide.pipeline.declared.fields import Problems
from bolide.pipeline.declared.parse import parse_definition
from bolide.pipeline.declared.python_form import node_of
from bolide.pipeline.folders import whole

SHUFFLED = {"spark.sql.shuffle.partitions": "8"}
"""In how many parts state is kept, which a checkpoint fixes for good.  Spark's 200 take seconds for each batch here."""

NAME_CHARS_MAX = 128
STEPS = ("deduplicated", "joined", "messages")

Recipe = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """What all recipes are told."""

    nameserver: str
    within: str
    to_topic: str | None = None
    to_parquet: str | None = None
    late: str | None = None
    time: str | None = None
    skip_bad_rows: bool = False
    starting: str = "earliest"
    name: str | None = None
    trigger: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the topics that are read."""
    settings: Mapping[str, str] = field(default_factory=dict)


def dedup_recipe(topic: str, by: str, asked: Asked) -> Recipe:
    """Messages of a topic, each once; to another topic they go as they are."""
    _check_target(asked, topic)
    source = _table_name(topic, STEPS)
    steps: dict[str, Any] = {"deduplicated": {"dedup": {"from": source, "by": by, **_window(asked)}}}
    if asked.to_topic is not None:
        steps["messages"] = {
            "sql": "SELECT body, tags, keys, properties, properties['__SHARDINGKEY'] AS sharding_key"
            " FROM deduplicated"
        }
    return _recipe(asked, f"dedup-{topic}", {source: topic}, steps)


def join_recipe(left: str, right: str, on: str, kind: str, select: str | None, asked: Asked) -> Recipe:
    """Pairs of messages of two topics; to a third one they go as JSON, unless `select` says otherwise."""
    _check_target(asked, left, right)
    first = _table_name(left, STEPS)
    second = _table_name(right, (*STEPS, first))
    if select is None and asked.to_topic is not None:
        select = _as_message(first, second, asked.time or STORED)
    join = {"left": first, "right": second, "on": on, "type": kind, **_window(asked)}
    if select is not None:
        join["select"] = select
    return _recipe(asked, f"join-{left}-{right}", {first: left, second: right}, {"joined": {"join": join}})


def definition_of(recipe: Recipe, folder: Path) -> Definition:
    """Paths are beside `folder`'s files; `ConfigError` says everything that is wrong."""
    problems = Problems()
    definition = parse_definition(node_of(recipe, 0), folder / "recipe", problems)
    check_definition(definition, problems)
    errors = [problem.text for problem in problems.found if not problem.is_warning]
    if errors:
        raise ConfigError("; ".join(dict.fromkeys(errors)))
    return definition


def _recipe(asked: Asked, what: str, sources: Mapping[str, str], steps: Recipe) -> Recipe:
    options = {"startingOffsets": asked.starting, **asked.options}
    last = list(steps)[-1]
    sink: dict[str, Any] = {"path": _folder(asked)} if asked.to_topic is None else {"topic": asked.to_topic}
    if asked.skip_bad_rows:
        sink["options"] = {"badRows": "skip"}
    recipe: dict[str, Any] = {
        "name": asked.name or _pipeline_name(what, asked),
        "nameserver": asked.nameserver,
        "settings": {**SHUFFLED, **asked.settings},
        "sources": {name: {"topic": topic, "options": dict(options)} for name, topic in sources.items()},
        "steps": dict(steps),
        "sinks": {"out": {"from": last, **sink}},
    }
    if asked.trigger is not None:
        recipe["trigger"] = asked.trigger
    return recipe


def _window(asked: Asked) -> dict[str, str]:
    said = {"within": asked.within, "late": asked.late, "time": asked.time}
    return {key: value for key, value in said.items() if value is not None}


def _check_target(asked: Asked, *topics: str) -> None:
    if (asked.to_topic is None) == (asked.to_parquet is None):
        raise ConfigError("say where the rows go, with --to TOPIC or with --to-parquet DIR")
    if asked.skip_bad_rows and asked.to_topic is None:
        raise ConfigError("--skip-bad-rows is for --to TOPIC: Parquet takes every row")
    read = {name.strip() for topic in topics for name in topic.split(",")}
    if asked.to_topic in read:
        raise ConfigError(
            f"{asked.to_topic} would be read and written: what is written would come again and again."
            " Write to another topic"
        )


def _as_message(left: str, right: str, time: str) -> str:
    def side(name: str) -> str:
        columns = ("tags", "keys", "msgId", STORED)
        return (
            f"struct(cast({name}.body AS string) AS body, "
            + ", ".join(f"{name}.{column}" for column in columns)
            + ")"
        )

    return (
        f"to_json(struct({side(left)} AS {left},"
        f" CASE WHEN {right}.{time} IS NOT NULL THEN {side(right)} END AS {right})) AS body,"
        f" {left}.tags AS tags, {left}.keys AS keys"
    )


def _table_name(topic: str, taken: Collection[str]) -> str:
    """What a topic is called in SQL: `a-b` would be a minus b."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", topic)[: NAME_CHARS_MAX - 2]
    name = f"_{name}" if not name or name[0].isdigit() else name
    while name.lower() in (other.lower() for other in taken):
        name += "_"
    return name


def _pipeline_name(what: str, asked: Asked) -> str:
    """Another target is another pipeline, with a checkpoint of its own."""
    target = asked.to_topic
    if target is None:
        path = Path(_folder(asked))
        target = f"{path.name}-{zlib.crc32(str(path).encode()):08x}"
    found = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{what}-to-{target}")
    if len(found) <= NAME_CHARS_MAX:
        return found
    return f"{found[: NAME_CHARS_MAX - 9]}-{zlib.crc32(found.encode()):08x}"


def _folder(asked: Asked) -> str:
    """Whole, so that a recipe says the same wherever its file is put; an address stays as it is."""
    return whole(asked.to_parquet or "")
