"""From a tree of nodes to a definition.  Goes on after an error, so that all of them are told at once.

What is wrong here is wrong by itself: a key that nobody knows, a value of the wrong kind, something that is missing.
How the parts fit together is looked at in `check.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bolide.model.addresses import check_addresses
from bolide.model.errors import ConfigError
from bolide.model.usual_nameserver import USUAL_NAMESERVER, nameserver_variable, usual_nameserver
from bolide.pipeline.declared.definition import TOPIC_FORMAT, Definition, Quarantine, Sink, Source
from bolide.pipeline.declared.fields import Fields, Problems
from bolide.pipeline.declared.parse_steps import (
    OUTPUT_MODES,
    parse_expectations,
    parse_step,
    parse_watermark,
)
from bolide.pipeline.declared.tree import Node
from bolide.pipeline.folders import whole

PIPELINE_KEYS = (
    "name",
    "nameserver",
    "trigger",
    "checkpoint",
    "settings",
    "sources",
    "steps",
    "sinks",
    "quarantine",
)
PLACE_KEYS = ("format", "topic", "nameserver", "path", "options")
SOURCE_KEYS = (*PLACE_KEYS, "schema", "batch", "watermark", "expect")
SINK_KEYS = (*PLACE_KEYS, "from", "output", "partition_by", "trigger")
QUARANTINE_KEYS = PLACE_KEYS


PIPELINE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def parse_definition(root: Node, file: Path, problems: Problems) -> Definition:
    """The definition as far as it can be understood; it is only one when nothing but warnings was added."""
    pipeline = Fields(root, "a pipeline", PIPELINE_KEYS, problems)
    given = pipeline.text("name")
    name = given or file.stem
    if not PIPELINE_NAME.fullmatch(name):
        problems.add(
            pipeline.line_of("name"), f"name: {name!r} is no name: letters, digits, '_', '-' and '.'"
        )
    places = _Places(pipeline.text("nameserver"), file.parent)
    quarantine = pipeline.member("quarantine")
    return Definition(
        name=name,
        is_named=given is not None,
        file=file,
        sources={key: _source(key, node, places, problems) for key, node in pipeline.named("sources")},
        steps={key: parse_step(key, node, file.parent, problems) for key, node in pipeline.named("steps")},
        sinks={key: _sink(key, node, places, problems) for key, node in pipeline.named("sinks")},
        quarantine=None if quarantine is None else _quarantine(quarantine, places, problems),
        trigger=pipeline.trigger("trigger") or "1 second",
        checkpoint=pipeline.text("checkpoint"),
        settings=pipeline.texts("settings"),
    )


# ---- the parts ---------------------------------------------------------------------------------------------------


def _source(name: str, node: Node, places: "_Places", problems: Problems) -> Source:
    fields = Fields(node, f"the source {name}", SOURCE_KEYS, problems)
    kind, options = places.of(fields, "subscribe")
    return Source(
        name=name,
        format=kind,
        options=options,
        line=node.line,
        schema=fields.text("schema"),
        is_stream=not fields.flag("batch"),
        watermark=parse_watermark(fields),
        expectations=parse_expectations(fields),
    )


def _sink(name: str, node: Node, places: "_Places", problems: Problems) -> Sink:
    fields = Fields(node, f"the sink {name}", SINK_KEYS, problems)
    kind, options = places.of(fields, "topic")
    inputs = fields.words("from")
    if len(inputs) != 1:
        problems.add(node.line, f"{fields.what} needs from: the one source or step whose rows it gets")
    return Sink(
        name=name,
        input=inputs[0] if inputs else "",
        format=kind,
        options=options,
        line=node.line,
        output_mode=fields.choice("output", OUTPUT_MODES),
        partition_by=fields.words("partition_by"),
        trigger=fields.trigger("trigger"),
    )


def _quarantine(node: Node, places: "_Places", problems: Problems) -> Quarantine:
    fields = Fields(node, "the quarantine", QUARANTINE_KEYS, problems)
    kind, options = places.of(fields, "topic")
    return Quarantine(kind, options, node.line)


@dataclass(frozen=True)
class _Places:
    """Where sources and sinks are, as the file's short forms say it: `topic`, `path`, `nameserver`."""

    nameserver: str | None
    folder: Path

    def of(self, fields: Fields, topic_option: str) -> tuple[str, Mapping[str, str]]:
        """Format and options.  A topic needs no format, a path does not say which it is."""
        options = dict(fields.texts("options"))
        lower = {name.lower() for name in options}
        topic, path, nameserver = (fields.text(key) for key in ("topic", "path", "nameserver"))
        kind = fields.text("format") or (TOPIC_FORMAT if topic or not path else "parquet")
        given = {topic_option: topic, "path": self.resolve(path) if path else None, "nameserver": nameserver}
        for option, value in given.items():
            if value is not None and option.lower() in lower:
                fields.problems.add(fields.line, f"{fields.what} says {option} twice: once in options")
            elif value is not None:
                options[option] = value
        if kind == TOPIC_FORMAT and "nameserver" not in lower | options.keys():
            options["nameserver"] = self.nameserver or _usual_nameserver(fields)
        return kind, options

    def resolve(self, path: str) -> str:
        """A path of the file is beside the file, wherever the command is called."""
        return whole(path, self.folder)


def _usual_nameserver(fields: Fields) -> str:
    """The one that commands ask too; where it is no address, the error says whose word that was."""
    found = usual_nameserver()
    try:
        check_addresses(nameserver_variable(), found)
    except ConfigError as error:
        fields.problems.add(fields.line, f"{fields.what}: {error}")
        return USUAL_NAMESERVER
    return found
