"""What steps keep state by, and of which cluster, written down beside the checkpoint when they begin.

Spark compares the types of state when a query goes on from a checkpoint, not what it means: state of duplicates by id
would be taken for state of duplicates by key, and nothing would be found in it.  Nor does it know of clusters: what has
come on one would be missing on another as a duplicate.  A cluster is known by its name servers; while one of them stays
it is the same.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bolide.model.addresses import parse_addresses
from bolide.model.errors import ConfigError
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.definition import TOPIC_FORMAT, Dedup, Definition, Join, Source

FILE = "kept.json"


@dataclass(frozen=True)
class Kept:
    """Of one step."""

    by: str
    nameservers: Sequence[str] = ()
    """Of all topics behind it; none where nobody has written them down."""
    times: Sequence[str] = ()
    """Of both sides of a join; none where nobody has written them down."""

    def __str__(self) -> str:
        return " and ".join((self.by, *dict.fromkeys(self.times)))

    def is_of_another_kind(self, other: "Kept") -> bool:
        return self.by != other.by or (bool(self.times and other.times) and [*self.times] != [*other.times])

    def is_elsewhere(self, other: "Kept") -> bool:
        return bool(self.nameservers and other.nameservers) and not {*self.nameservers} & {*other.nameservers}


def keep(definition: Definition, checkpoint: Checkpoint) -> None:
    """`ConfigError` for a step that has state of another kind or cluster there.

    Where only Spark reads, nothing is known.
    """
    if checkpoint.folder is None:
        return
    file = checkpoint.folder / FILE
    before = _read(file) if checkpoint.queries() else {}
    now = _kept(definition)
    for name, kept in now.items():
        place = definition.place(definition.steps[name].line)
        was = before.get(name, kept)
        if was.is_of_another_kind(kept):
            raise ConfigError(
                f"{place}the step {name} keeps state of"
                f" {kept}, and what {checkpoint.location} has is of {was}: it cannot go on from there."
                " Give the pipeline another name or checkpoint"
            )
        if was.is_elsewhere(kept):
            raise ConfigError(
                f"{place}the step {name} reads of the cluster at {', '.join(kept.nameservers)}, and the state that"
                f" {checkpoint.location} has is of the one at {', '.join(was.nameservers)}: messages of"
                " the one would be missed as duplicates or partners of the other's. Give the pipeline another name or"
                " checkpoint; if it is the same cluster, and only its name servers have moved, say so by removing"
                f" {file}"
            )
    if now:
        new = file.with_suffix(".new")
        told = {name: asdict(kept) for name, kept in {**before, **now}.items()}
        new.write_text(json.dumps(told, indent=2) + "\n")
        new.replace(file)


def _kept(definition: Definition) -> dict[str, Kept]:
    found: dict[str, Kept] = {}
    for step in definition.steps.values():
        nameservers = _nameservers(definition, step.name)
        match step.work:
            case Dedup(by=by, time=time):
                found[step.name] = Kept(f"{step.inputs[0]} by {by} and {time}", nameservers)
            case Join(on=on, type=kind, times=times):
                found[step.name] = Kept(f"{' and '.join(step.inputs)} ({kind}) on {on}", nameservers, times)
    return found


def _nameservers(definition: Definition, step: str) -> list[str]:
    sources = [part for part in definition.behind(step) if isinstance(part, Source)]
    return sorted(
        {
            str(address)
            for source in sources
            if source.format == TOPIC_FORMAT
            for name, text in source.options.items()
            if name.lower() == "nameserver"
            for address in parse_addresses(text)
        }
    )


def _read(file: Path) -> dict[str, Kept]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return {str(name): _told(kept) for name, kept in found.items()} if isinstance(found, dict) else {}


def _told(kept: Any) -> Kept:
    """Before clusters were written down, it was a text; before the times of joins were, there are none."""
    if isinstance(kept, dict):
        nameservers, times = ([str(one) for one in kept.get(name) or ()] for name in ("nameservers", "times"))
        return Kept(str(kept.get("by")), nameservers, times)
    return Kept(str(kept))
