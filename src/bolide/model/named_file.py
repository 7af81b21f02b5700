"""A file that somebody has named: one that cannot be read is wrong usage, as a wrong option is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bolide.model.errors import ConfigError


@contextmanager
def named_file(path: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
