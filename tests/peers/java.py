"""The Java side on disk: builds our programs and fetches the real RocketMQ jars, once per version.

Everything lands in `.cache/peers/<version>`: `lib` with every jar, `classes` with our programs, `stamp` with the
fingerprint of the sources they were made from. While the stamp fits, nothing runs and no network is needed.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Path(__file__).resolve().parent / "java"
CACHE = ROOT / ".cache" / "peers"

LATEST = "5.5.0"
CLASSIC = "4.9.7"
VERSIONS = (LATEST, CLASSIC)

MAIN = "bolide.peer.Main"
BUILD_SECONDS = 900

QUICK_START = ("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
OPEN_MODULES = (
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)


# 4.x stops without these files. Only problems are worth a line; they go to stdout or, in a witness, to a file.
_LOGBACK_CLASSIC = """<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %p %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="console"/></root>
</configuration>
"""
_LOGBACK_CLIENT = """<configuration>
  <appender name="file" class="org.apache.rocketmq.logging.ch.qos.logback.core.FileAppender">
    <file>${user.home}/client.log</file>
    <encoder><pattern>%d{HH:mm:ss.SSS} %p %c %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="file"/></root>
</configuration>
"""


class BuildFailed(RuntimeError):
    """Maven said no; the message carries what it said."""


def java_command() -> str:
    path = shutil.which("java")
    if path is None:
        raise BuildFailed("java is not installed")
    return path


@cache
def class_path(version: str) -> str:
    """Class path with our programs and every RocketMQ jar of the version; built first where necessary."""
    place = build(version)
    return f"{place / 'classes'}:{place / 'lib'}/*"


def write_logging_files(home: Path) -> Path:
    """Give a JVM's home directory its logging set-up; the result is the file for a 5.x client."""
    conf = home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for part in ("broker", "namesrv", "tools"):
        (conf / f"logback_{part}.xml").write_text(_LOGBACK_CLASSIC)
    client = conf / "client_logback.xml"
    client.write_text(_LOGBACK_CLIENT)
    return client


def build(version: str) -> Path:
    """Make the version's directory current and return it."""
    place = CACHE / version
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place / "lock"):
        stamp, wanted = place / "stamp", _fingerprint(version)
        if not (stamp.exists() and stamp.read_text() == wanted):
            stamp.unlink(missing_ok=True)
            _run_maven(version, place)
            stamp.write_text(wanted)
    return place


def _fingerprint(version: str) -> str:
    digest = hashlib.sha256(version.encode())
    for path in sorted([PROJECT / "pom.xml", *PROJECT.glob("src/**/*.java")]):
        digest.update(path.relative_to(PROJECT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _run_maven(version: str, place: Path) -> None:
    """Offline where the jars are already here, else with the network, where a second try resumes a broken download."""
    maven = shutil.which("mvn")
    if maven is None:
        raise BuildFailed("mvn is not installed")
    shutil.rmtree(place / "classes", ignore_errors=True)
    online: list[list[str]] = [[], ["--update-snapshots"]]
    attempts = [["--offline"], *online] if (place / "lib").exists() else online
    for flags in attempts:
        words: list[str | Path] = [maven, "--quiet", "--batch-mode", *flags]
        words += ["--file", PROJECT / "pom.xml", "package"]
        words += [f"-Drocketmq.version={version}", f"-Dpeers.build={place}"]
        run = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        if run.returncode == 0:
            return
    said = re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr).strip().splitlines()
    raise BuildFailed("\n".join([f"the Java peers {version} could not be built", *said[-30:]]))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
