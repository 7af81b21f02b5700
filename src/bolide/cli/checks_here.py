"""Checks of `bolide doctor` on this machine: Python and its modules, Spark, ports, disk, limits, clock.  No network."""

import errno
import platform
import resource
import shutil
import socket
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from bolide.cli.findings import Finding, doubtful, good, wrong
from bolide.compiled import PURE, describe
from bolide.store.retention import RetentionSettings, is_full, must_force

PYTHON_MIN = (3, 11)
FILES_MIN = 4096
DISK_BYTES_WRONG = 2 * 1024**3
DISK_BYTES_DOUBTFUL = 10 * 1024**3
CLOCK_MS_MIN = 1_735_689_600_000
"""The first moment of 2025: a clock before it was never set."""


def check_python() -> Iterator[Finding]:
    version = platform.python_version()
    if sys.version_info[:2] < PYTHON_MIN:
        yield wrong("python", f"Python {version} is too old", "Install Python 3.11 or newer.")
    else:
        yield good("python", f"Python {version} on {platform.system()} {platform.machine()}")
    slow = sorted(name for name, kind in describe().items() if kind != "compiled")
    if not slow:
        yield good("modules", "all compiled modules are in use")
    elif PURE:
        yield doubtful(
            "modules",
            "BOLIDE_PURE=1: everything runs as plain Python, many times slower",
            "Unset BOLIDE_PURE.",
        )
    else:
        yield doubtful(
            "modules",
            f"not compiled, so slower: {', '.join(slow)}",
            "Install a C compiler and Python's headers (Debian: apt-get install gcc python3-dev), then install again.",
        )
    if find_spec("uvloop") is None:
        yield doubtful("event loop", "uvloop is missing: plain asyncio serves, slower", "pip install uvloop")
    else:
        yield good("event loop", "uvloop")


def check_spark() -> Finding:
    """Most people need neither, so only what is there and too old is doubtful."""
    from bolide.pipeline.java import JAVA_LEAST, find_java, is_old, java_version

    java = find_java()
    version = None if java is None else java_version(java)
    if find_spec("pyspark") is None:
        return good(
            "pipelines", "no PySpark, which only `bolide pipeline` needs: pip install 'bolide[spark]'"
        )
    spark = f"PySpark {metadata.version('pyspark')}"
    if java is None:
        return good("pipelines", f"{spark}, and no Java: `bolide pipeline` needs {JAVA_LEAST} or newer")
    if version is not None and is_old(version):
        return doubtful(
            "pipelines",
            f"{spark}, and {java} is Java {version}",
            f"`bolide pipeline` needs Java {JAVA_LEAST} or newer; JAVA_HOME says which is used.",
        )
    return good("pipelines", f"{spark} with Java {version or 'of a version that it does not tell'} ({java})")


def check_port(name: str, port: int) -> Finding:
    """Whether a server could start here; asked only when none is running."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return wrong("ports", f"{name} port {port}: {error.strerror}", "Choose a port above 1023.")
            return wrong(
                "ports",
                f"{name} port {port} is used by another program",
                f"Find it with `ss -ltnp 'sport = :{port}'`, or give bolide another port.",
            )
    return good("ports", f"{name} port {port} is free: `bolide up` can start here")


def check_disk(data: Path) -> Finding:
    """Room for the log, which grows in steps of 1 GiB."""
    place = data.expanduser()
    while not place.exists():
        place = place.parent
    usage = shutil.disk_usage(place)
    used_ratio = usage.used / max(1, usage.used + usage.free)
    text = f"{_gib(usage.free)} of {_gib(usage.total)} free at {place}, {used_ratio:.1%} used"
    if usage.free < DISK_BYTES_WRONG:
        advice = "Free some space or choose another disk with --data: a broker needs 2 GiB to begin with."
        return wrong("disk", text, advice)
    limits = RetentionSettings()
    if is_full(limits, used_ratio):
        advice = (
            f"Free some space: above {limits.full_percent} % a broker takes no messages"
            " (diskSpaceWarningLevelRatio)."
        )
        return wrong("disk", text, advice)
    if must_force(limits, used_ratio):
        advice = (
            f"Free some space: above {limits.force_percent} % a broker deletes its oldest messages, whatever their age"
            " (diskSpaceCleanForciblyRatio, cleanFileForciblyEnable)."
        )
        return doubtful("disk", text, advice)
    if usage.free < DISK_BYTES_DOUBTFUL:
        return doubtful("disk", text, "Enough to begin with; watch it.")
    return good("disk", text)


def check_file_limit() -> Finding:
    """Every connection, segment and queue file is a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES_MIN:
        return doubtful(
            "open files",
            f"this shell allows {soft} open files (at most {hard})",
            f"Before starting a broker: ulimit -n {FILES_MIN if hard < 0 else min(hard, 65536)}",
        )
    return good("open files", f"{soft if soft >= 0 else 'unlimited'} allowed")


def check_clock(now_ms: int) -> Finding:
    if now_ms < CLOCK_MS_MIN:
        return wrong("clock", "this machine's clock is years behind", "Set it, and let NTP keep it.")
    return good("clock", "this machine's clock is plausible")


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 1024**3:.1f} GiB"
