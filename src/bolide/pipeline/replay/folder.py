"""The folder of a replay: what it is, and how far it has come.

    FOLDER/lock           held while it runs, by the system: nothing is left over from a kill
    FOLDER/replay.json    what it is, written once before its first message (`plan.py`)
    FOLDER/done.json      how many slices are done, and how many messages they had

A slice that is done and not written down, because of a crash in between, is sent again; the brokers then have it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bolide.model.errors import ConfigError
from bolide.model.limits.spark import REPLAY_FILE_BYTES_MAX
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.folders import local_folder
from bolide.pipeline.replay.plan import NAMED_MAX, Replay, decode_replay, encode_replay
from bolide.pipeline.whole_files import write_whole

DEFAULT_ROOT = "~/.bolide/replays"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True)
class Done:
    """The first slices of a replay, which are sent."""

    slices: int = 0
    sent: int = 0
    stored_before: int = 0
    """Messages that the brokers had already when a slice was tried again."""
    refused: int = 0
    """Messages that no write takes, and that were passed over."""
    named: tuple[str, ...] = ()
    """The first of those, with their places and the reasons."""

    def plus(self, sent: int, stored_before: int, refused: int = 0, named: Sequence[str] = ()) -> "Done":
        return Done(
            self.slices + 1,
            self.sent + sent,
            self.stored_before + stored_before,
            self.refused + refused,
            (*self.named, *named)[:NAMED_MAX],
        )


@dataclass(frozen=True)
class ReplayFolder:
    path: Path

    @classmethod
    def of(cls, replay_id: str, root: str | None = None) -> "ReplayFolder":
        if (folder := local_folder(root or DEFAULT_ROOT)) is None:
            raise ConfigError(
                f"{root}: a replay is kept in a folder of this machine, where two runs see each other"
            )
        return cls(folder.absolute() / check_id(replay_id))

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts nobody else runs the replay."""
        with Checkpoint(str(self.path)).held():
            yield

    def check_free(self) -> None:
        Checkpoint(str(self.path)).check_free()

    def replay(self) -> Replay | None:
        """None where there is none yet."""
        text = _read(self.path / "replay.json")
        return None if text is None else decode_replay(text, str(self.path / "replay.json"))

    def keep(self, replay: Replay) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / "replay.json", encode_replay(replay))

    def done(self) -> Done:
        text = _read(self.path / "done.json")
        if text is None:
            return Done()
        try:
            tree = json.loads(text)
            named = tuple(map(str, tree.pop("named", ())))
            return Done(**{name: int(number) for name, number in tree.items()}, named=named)
        except (AttributeError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{self.path / 'done.json'} cannot be read ({error}), so nobody knows what was sent"
            ) from error

    def note(self, done: Done) -> None:
        write_whole(self.path / "done.json", json.dumps(asdict(done)) + "\n")


def check_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ConfigError(f"{text[:100]!r} is no id: letters, digits, '.', '_' and '-', 80 of them at most")
    return text


def _read(path: Path) -> str | None:
    try:
        with path.open() as file:
            text = file.read(REPLAY_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    if len(text) > REPLAY_FILE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than a file of a replay can be")
    return text
