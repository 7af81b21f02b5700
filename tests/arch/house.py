"""Facts about the checkout that the house rules share: its files, its rooms and their layers."""

import itertools
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "bolide"


@cache
def files(*suffixes: str) -> list[Path]:
    """Tracked and new files of the checkout, ignored ones left out; all of them, or only some suffixes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    paths = [ROOT / name for name in sorted(set(listed)) if name]
    return [path for path in paths if path.is_file() and (not suffixes or path.suffix in suffixes)]


def sources(*suffixes: str) -> list[Path]:
    """Files below `src` with one of the suffixes."""
    return [path for path in files(*suffixes) if path.is_relative_to(ROOT / "src")]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def dependencies() -> set[str]:
    """The libraries we ask for by name, in any extra."""
    project = pyproject()["project"]
    asked = itertools.chain(project["dependencies"], *project["optional-dependencies"].values())
    return {re.split(r"[^\w-]", text)[0] for text in asked} - {"bolide"}


def contracts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pyproject()["tool"]["importlinter"]["contracts"]
    return found


@cache
def layer_of_room() -> dict[str, int]:
    """Room to layer, counted from the bottom; rooms side by side share a number."""
    (layers,) = (contract["layers"] for contract in contracts() if contract["type"] == "layers")
    return {
        room.strip(" ()"): number
        for number, layer in enumerate(reversed(layers))
        for room in layer.split("|")
    }
