"""A definition from a text, and what is wrong with it."""

from pathlib import Path
from textwrap import dedent

from bolide.pipeline.declared.files import Loaded, load


def loaded(folder: Path, text: str, name: str = "pipeline.yaml") -> Loaded:
    file = folder / name
    file.write_text(dedent(text))
    return load(file)


def problems(folder: Path, text: str, name: str = "pipeline.yaml") -> list[str]:
    """As `bolide pipeline check` tells them, without the file."""
    return [
        f"{one.line}: {'warning: ' if one.is_warning else ''}{one.text}"
        for one in loaded(folder, text, name).problems
    ]
