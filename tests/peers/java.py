"""The Java side on disk: builds our programs and fetches the real RocketMQ jars, once per version.

Everything lands in `.cache/peers/<version>`: `lib` with every jar, `classes` with our programs.
"""

import shutil
from functools import cache
from pathlib import Path

from tests.peers import built

PROJECT = Path(__file__).resolve().parent / "java"

LATEST = "5.5.0"
CLASSIC = "4.9.7"
VERSIONS = (LATEST, CLASSIC)

MAIN = "bolide.peer.Main"

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


def java_command() -> str:
    return built.tool("java")


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
    sources = [PROJECT / "pom.xml", *PROJECT.glob("src/**/*.java")]
    return built.made(version, version, sources, lambda place: _run_maven(version, place))


def _run_maven(version: str, place: Path) -> None:
    """Offline where the jars are already here, else with the network, where a second try resumes a broken download."""
    shutil.rmtree(place / "classes", ignore_errors=True)
    words: list[str | Path] = [built.tool("mvn"), "--quiet", "--batch-mode", "--file", PROJECT / "pom.xml"]
    words += ["package", f"-Drocketmq.version={version}", f"-Dpeers.build={place}"]
    attempts = [words, [*words, "--update-snapshots"]]
    if (place / "lib").exists():
        attempts.insert(0, [*words, "--offline"])
    built.run(f"the Java peers {version}", attempts)
