"""What steps keep state by, written down beside the checkpoint when they begin.

Spark compares the types of state when a query goes on from a checkpoint, not what it means: state of duplicates by id
would be taken for state of duplicates by key, and nothing would be found in it.
"""

import json
from pathlib import Path

from bolide.model.errors import ConfigError
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.definition import Dedup, Definition, Join

FILE = "kept.json"


def keep(definition: Definition, checkpoint: Checkpoint) -> None:
    """`ConfigError` for a step that has state of another kind there.  Where only Spark reads, nothing is known."""
    if checkpoint.folder is None:
        return
    file = checkpoint.folder / FILE
    before = _read(file) if checkpoint.queries() else {}
    now = _kept(definition)
    for name, kept in now.items():
        if before.get(name, kept) != kept:
            raise ConfigError(
                f"{definition.place(definition.steps[name].line)}the step {name} keeps state of"
                f" {kept}, and what {checkpoint.location} has is of {before[name]}: it cannot go on from there."
                " Give the pipeline another name or checkpoint"
            )
    if now:
        new = file.with_suffix(".new")
        new.write_text(json.dumps({**before, **now}, indent=2) + "\n")
        new.replace(file)


def _kept(definition: Definition) -> dict[str, str]:
    found: dict[str, str] = {}
    for step in definition.steps.values():
        match step.work:
            case Dedup(by=by, time=time):
                found[step.name] = f"{step.inputs[0]} by {by} and {time}"
            case Join(on=on, type=kind):
                found[step.name] = f"{' and '.join(step.inputs)} ({kind}) on {on}"
    return found


def _read(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return {str(name): str(kept) for name, kept in found.items()} if isinstance(found, dict) else {}
