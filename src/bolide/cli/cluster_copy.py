"""`bolide cluster export` and `import`: topics, groups and offsets as a file."""

import os
import sys
from io import BufferedWriter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from bolide.cli.ask import ask, confirm
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver, OfCluster, Preview, Yes
from bolide.cli.output import counted, say, write_json, write_table
from bolide.cli.settings import parse_assignments
from bolide.model.errors import ConfigError
from bolide.model.named_file import named_file
from bolide.model.printable import printable_json

if TYPE_CHECKING:
    from bolide.admin.metadata import BrokerMetadata, Plan

FILE_BYTES_MAX = 256 * 1024 * 1024
STANDARD = "-"


def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file, or - for stdout.")] = STANDARD,
    cluster: OfCluster = None,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Topics, groups and offsets of every broker, as JSON: to keep, to compare, to import elsewhere.

    Messages are not in it.

    [bold]Examples[/bold]

        bolide cluster export cluster.json
        bolide cluster export | jq '.brokers[].topics | keys'
    """
    from bolide.admin.metadata import export_metadata, metadata_as_json

    found = ask(nameserver, lambda servers: export_metadata(servers, cluster))
    told = orjson.dumps(metadata_as_json(found), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if file == STANDARD:
        print(printable_json(told.decode()), end="")
    else:
        with _new_file(file) as out:
            out.write(told)
            out.flush()
            os.fsync(out.fileno())
    topics = sum(len(part.topics) for part in found.values())
    groups = sum(len(part.groups) for part in found.values())
    say(f"{counted(topics, 'topic')} and {counted(groups, 'group')} of {counted(len(found), 'broker')}")


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What was exported, or - for stdin.")],
    renamed: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OLD=NEW", help="A broker has another name here; may be given often."),
    ] = None,
    offsets: Annotated[
        bool,
        typer.Option("--offsets", help="Offsets too: for brokers that have the same messages."),
    ] = False,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Make the topics and groups of an export that are missing here. What exists stays as it is.

    Offsets are taken over only with --offsets, where the queue is so long and no member is connected.

    [bold]Examples[/bold]

        bolide cluster import cluster.json --preview
        bolide cluster import cluster.json --map broker-a=broker-x --yes
    """
    from bolide.admin.metadata import carry_out, plan_import

    metadata = _read(file)
    names = parse_assignments(renamed or (), "--map")
    unknown = sorted(set(names) - set(metadata))
    if unknown:
        raise ConfigError(f"--map {unknown[0]}: the export is of {', '.join(sorted(metadata))}")
    plan = ask(nameserver, lambda servers: plan_import(servers, metadata, names, with_offsets=offsets))
    words = _words(plan)
    if not as_json:
        _show(plan)
    if preview or plan.is_empty:
        say(
            f"{words} would be made. Nothing was changed"
            if not plan.is_empty
            else "everything is there already"
        )
    else:
        confirm(f"Make {words}?", yes=yes, stakes=f"this makes {words}", otherwise="nothing was changed")
        ask(nameserver, lambda servers: carry_out(servers, plan))
        say(f"made {words}")
    if as_json:
        write_json(
            {
                "preview": preview,
                "topics": [{"broker": broker, "topic": topic.name} for broker, topic in plan.topics],
                "groups": [{"broker": broker, "group": group.name} for broker, group in plan.groups],
                "offsets": {group: len(moves) for group, moves in plan.moves.items()},
                "left": [{"broker": broker, "name": name, "why": why} for broker, name, why in plan.left],
            }
        )


def _new_file(name: str) -> BufferedWriter:
    try:
        return Path(name).open("xb")
    except FileExistsError:
        raise ConfigError(f"{name} exists: name a new file") from None
    except OSError as error:
        raise ConfigError(f"cannot write {name}: {error.strerror}") from error


def _read(file: str) -> "dict[str, BrokerMetadata]":
    from bolide.admin.metadata import metadata_from_json

    if file == STANDARD:
        told = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
    else:
        with named_file(file), Path(file).open("rb") as source:
            told = source.read(FILE_BYTES_MAX + 1)
    if len(told) > FILE_BYTES_MAX:
        raise ConfigError(f"{file} has more than {FILE_BYTES_MAX} bytes, which no export has")
    try:
        return metadata_from_json(orjson.loads(told))
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{file} is no JSON: {error}") from None


def _words(plan: "Plan") -> str:
    offsets = sum(map(len, plan.moves.values()))
    more = f", {counted(offsets, 'offset')}" if offsets else ""
    return f"{counted(len(plan.topics), 'topic')}, {counted(len(plan.groups), 'group')}{more}"


def _show(plan: "Plan") -> None:
    rows = [(broker, "topic", topic.name, "new") for broker, topic in plan.topics]
    rows += [(broker, "group", group.name, "new") for broker, group in plan.groups]
    rows += [
        ("-", "offsets", group, f"in {counted(len(moves), 'queue')}") for group, moves in plan.moves.items()
    ]
    rows += [(broker, "left", name, why) for broker, name, why in plan.left]
    if rows:
        write_table(("BROKER", "WHAT", "NAME", "HOW"), rows)
