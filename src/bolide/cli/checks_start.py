"""What stands in the way of a broker's start here and now, for `bolide broker --check`: its store, its addresses, its
port.  Nothing is started, and nothing that is made stays.
"""

import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bolide.broker.config import BrokerConfig
from bolide.cli.standalone import ELSEWHERE, check_directory
from bolide.model.errors import ConfigError, StoreError
from bolide.model.settings_table import Examined, Finding
from bolide.store.disk_os import OsDisk, room_at
from bolide.store.file_names import place_of

REGISTERS_NOWHERE = "registers nowhere: give it a name server (-n, namesrvAddr) so that clients find it"


def examine_start(settings: Mapping[str, str]) -> Examined:
    """All that is to be said of a broker's settings, and when they are sound, of a start with them."""
    found = BrokerConfig.examine(settings)
    if not found.problems:
        here = check_start(BrokerConfig(**found.values))
        found.problems.extend(here.problems)
        found.warnings.extend(here.warnings)
    return found


def check_start(config: BrokerConfig) -> Examined:
    """Problems are what a start would end with.  A store in use is a warning: whoever checks before a restart means
    to stop that broker, and its port is not tried.
    """
    root = Path(config.root).expanduser()
    found = Examined({}, [*_check_store(root, config), *_check_hosts(config)], [])
    if not config.nameservers:
        found.warnings.append(Finding("", f"it {REGISTERS_NOWHERE}"))
    if found.problems:
        return found
    if OsDisk().is_locked(str(root / "lock")):
        why = f"a broker runs on the store {root} now: stop it before another one starts there"
        found.warnings.append(Finding("storePathRootDir", why))
    else:
        found.problems.extend(_check_port(config))
    return found


def _check_store(root: Path, config: BrokerConfig) -> Iterator[Finding]:
    try:
        there = check_directory(root)
        size = _segment_bytes(root / "commitlog")
        room = _room(there)
    except (ConfigError, StoreError) as error:
        yield Finding("storePathRootDir", str(error))
    except OSError as error:
        yield Finding("storePathRootDir", f"{error.filename} cannot be read: {error.strerror}")
    else:
        if not _segments(root / "commitlog") and room is not None and room < config.segment_bytes:
            given = (
                f"the log begins with {config.segment_bytes} bytes, and the disk of {root} has {room} left"
            )
            yield Finding("mappedFileSizeCommitLog", f"{given}: free some, set fewer, or {ELSEWHERE}")
        if size not in (None, config.segment_bytes):
            given = (
                f"mappedFileSizeCommitLog is {config.segment_bytes}, and {root} has segments of {size} bytes"
            )
            yield Finding("mappedFileSizeCommitLog", f"{given}: set it to that")


def _room(there: Path) -> int | None:
    """Where a file system does not tell, it may be one that keeps nothing at all (/proc): then a directory is tried."""
    room = room_at(str(there))
    if room is None:
        try:
            os.rmdir(tempfile.mkdtemp(prefix=".bolide-check-", dir=there))
        except OSError as error:
            raise ConfigError(
                f"no directory can be made in {there}: {error.strerror}; {ELSEWHERE}"
            ) from error
    return room


def _segments(folder: Path) -> list[str]:
    """`StoreError` for one that is no file, which a start would end with: opening a pipe, it would wait for ever."""
    names = (
        sorted(name for name in os.listdir(folder) if place_of(name) is not None) if folder.exists() else []
    )
    for name in names:
        OsDisk().size_of(str(folder / name))
    return names


def _segment_bytes(folder: Path) -> int | None:
    """Of a log that has begun; its first segment is blank when power was lost while it was made."""
    names = _segments(folder)
    if not names:
        return None
    with (folder / names[0]).open("rb") as file:
        return os.fstat(file.fileno()).st_size if any(file.read(4096)) else None


def _check_hosts(config: BrokerConfig) -> Iterator[Finding]:
    for key, host in (("bindAddress", config.bind_host), ("brokerIP1", config.advertised_host)):
        try:
            if host:
                socket.getaddrinfo(host.strip("[]"), None)
        except OSError as error:
            why = f"{key} is {host!r}, which this machine cannot resolve: {error.strerror or error}"
            yield Finding(key, why)


def _check_port(config: BrokerConfig) -> Iterator[Finding]:
    kind, how, _, _, place = socket.getaddrinfo(
        config.bind_host or None, config.port, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(kind, how) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
        except OSError as error:
            why = f"nobody can listen on {config.bind_host}:{config.port} here: {error.strerror}"
            yield Finding("listenPort", why)
