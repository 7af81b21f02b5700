"""Programs of other languages, made once: each in a directory below `.cache/peers` that has a stamp of its sources.

While the stamp fits, nothing runs and no network is needed.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "peers"
BUILD_SECONDS = 900
SAID_LINES_MAX = 30


class BuildFailed(RuntimeError):
    """A tool said no; the message carries what it said."""


def tool(name: str) -> str:
    """The path of a command."""
    path = shutil.which(name)
    if path is None:
        raise BuildFailed(f"{name} is not installed")
    return path


def made(name: str, version: str, sources: Iterable[Path], make: Callable[[Path], None]) -> Path:
    """The directory of this name, made again by `make` where its version or its sources have changed."""
    place = CACHE / name
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place / "lock"):
        stamp, wanted = place / "stamp", _fingerprint(version, sources)
        if not (stamp.exists() and stamp.read_text() == wanted):
            stamp.unlink(missing_ok=True)
            make(place)
            stamp.write_text(wanted)
    return place


def run(
    what: str,
    attempts: Sequence[Sequence[str | Path]],
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run the first of these commands that succeeds; when all fail, raise with what the last one said."""
    for words in attempts:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=folder,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        if done.returncode == 0:
            return
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr).strip().splitlines()
    raise BuildFailed("\n".join([f"{what} could not be built", *said[-SAID_LINES_MAX:]]))


def jars(name: str, pom: Path, what: str, version: str) -> str:
    """The class path of what a pom names, at the version that its property `what` gets."""

    def make(place: Path) -> None:
        words: list[str | Path] = [tool("mvn"), "--quiet", "--batch-mode", "--file", pom, "package"]
        words += [f"-D{what}.version={version}", f"-Dpeers.build={place}"]
        run(f"the jars of {name}", [words, [*words, "--update-snapshots"]])

    return f"{made(name, version, [pom], make) / 'lib'}/*"


def python(name: str, packages: Sequence[str]) -> Path:
    """An interpreter with these packages, as `name==version`, what they need, and nothing of ours."""

    def make(place: Path) -> None:
        shutil.rmtree(place / "venv", ignore_errors=True)
        run(f"a Python for {name}", [[sys.executable, "-m", "venv", place / "venv"]])
        pip: list[str | Path] = [place / "venv" / "bin" / "pip", "--quiet", "--disable-pip-version-check"]
        run(" ".join(packages), [[*pip, "install", *packages]] * 2)

    version = f"{' '.join(packages)} {sys.version} {sys.prefix}"
    return made(name, version, [], make) / "venv" / "bin" / "python"


def _fingerprint(version: str, sources: Iterable[Path]) -> str:
    digest = hashlib.sha256(version.encode())
    for path in sorted(sources):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
