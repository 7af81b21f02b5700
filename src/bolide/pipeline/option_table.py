"""All options of the formats: what they are called, for which use they are, and how their texts are read.

A use (a batch read, a stream, a write) reads its own options out of an `OptionTexts` and says at the end everything
that is wrong.  Case does not matter.  A name that is not known is an error: a misspelled option must not be a read of
the wrong range.  A new option is one line in `OPTIONS`, and its name is then known to all hints.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, TypeVar

from bolide.model.errors import BolideError, ConfigError
from bolide.model.numbers import parse_count

SHOWN_MAX = 200
CLOSE = 0.7
"""How alike two names are when one may be the other, misspelled."""


class Use(Flag):
    BATCH = auto()
    STREAM = auto()
    WRITE = auto()
    STREAM_WRITE = auto()
    STORE = auto()
    READ = BATCH | STREAM
    ANY_WRITE = WRITE | STREAM_WRITE


_USES_IN_WORDS: Mapping[Use, str] = {
    Use.BATCH: "batch reads (spark.read)",
    Use.STREAM: "streams (spark.readStream)",
    Use.WRITE: "writes (DataFrame.write)",
    Use.STREAM_WRITE: "writes of streams (DataFrame.writeStream)",
    Use.STORE: "the format rocketmq-store",
}


@dataclass(frozen=True)
class Option:
    name: str
    uses: Use
    elsewhere: tuple[str, ...] = ()
    """What the same thing is called by others; whoever writes that hears this name."""


OPTIONS = (
    Option(
        "nameserver",
        Use.READ | Use.ANY_WRITE,
        ("kafka.bootstrap.servers", "namesrvAddr", "namesrv", "bootstrapServers"),
    ),
    # ---- which messages
    Option("subscribe", Use.READ | Use.STORE, ("topics", "path", "paths")),
    Option("topic", Use.READ | Use.STORE | Use.ANY_WRITE),
    Option("subscribePattern", Use.READ | Use.STORE, ("topicPattern", "pattern")),
    Option("assign", Use.READ),
    Option("retryOf", Use.READ),
    Option("dlqOf", Use.READ, ("deadLettersOf",)),
    Option("tags", Use.READ | Use.STORE, ("subExpression", "tag")),
    Option("sql", Use.READ, ("sql92", "filter")),
    Option("keys", Use.READ | Use.STORE, ("key",)),
    Option("path", Use.STORE, ("store", "storePath", "storePathRootDir")),
    Option("includeSystemTopics", Use.STORE),
    # ---- who writes, and how; the last two are Spark's own, which it hands on
    Option("producerGroup", Use.ANY_WRITE, ("group", "groupId")),
    Option("writeTimeout", Use.ANY_WRITE, ("timeout", "sendMsgTimeout", "kafka.delivery.timeout.ms")),
    Option("idempotent", Use.STREAM_WRITE, ("exactlyOnce", "semantics", "kafka.enable.idempotence")),
    Option("maxMessagesPerSecond", Use.ANY_WRITE, ("rate", "rateLimit", "maxRowsPerSecond")),
    Option("badRows", Use.ANY_WRITE),
    Option("checkpointLocation", Use.STREAM_WRITE),
    Option("queryName", Use.STREAM_WRITE),
    # ---- from where to where
    Option("startingOffsets", Use.READ),
    Option("startingTimestamp", Use.READ | Use.STORE),
    Option("startingOffsetsByTimestamp", Use.READ),
    Option("startingOffsetsByTimestampStrategy", Use.READ),
    Option("endingOffsets", Use.BATCH),
    Option("endingTimestamp", Use.BATCH | Use.STORE),
    Option("endingOffsetsByTimestamp", Use.BATCH),
    Option("pushFilters", Use.BATCH, ("filterPushdown", "pushDownPredicate")),
    Option("failOnDataLoss", Use.READ | Use.STORE),
    # ---- how much at a time; a batch takes the limits of triggers and leaves them alone, as with Kafka
    Option("maxOffsetsPerTrigger", Use.READ),
    Option("minOffsetsPerTrigger", Use.READ),
    Option("maxTriggerDelay", Use.READ),
    Option("maxBytesPerTrigger", Use.READ),
    Option("minPartitions", Use.READ | Use.STORE),
    Option("maxRecordsPerPartition", Use.READ),
    Option("maxBytesPerPartition", Use.READ | Use.STORE),
    Option("maxBytesPerPull", Use.READ, ("pullBatchSize",)),
    # ---- what rows look like, and who reads
    Option("schema", Use.READ),
    Option("includeHeaders", Use.READ),
    Option("columns", Use.READ | Use.STORE, ("select",)),
    Option("brokerName", Use.STORE),
    Option("badBodies", Use.READ | Use.STORE),
    Option("consumerGroup", Use.READ, ("group", "groupId", "kafka.group.id", "groupIdPrefix")),
    # ---- as whom, and whether in secret
    Option("accessKey", Use.READ | Use.ANY_WRITE, ("accessKeyId",)),
    Option("secretKey", Use.READ | Use.ANY_WRITE, ("accessKeySecret", "secretAccessKey")),
    Option("securityToken", Use.READ | Use.ANY_WRITE, ("sessionToken", "stsToken")),
    Option("tls", Use.READ | Use.ANY_WRITE, ("useTLS", "ssl", "kafka.security.protocol")),
    Option("tlsCaFile", Use.READ | Use.ANY_WRITE, ("caFile", "kafka.ssl.truststore.location")),
    Option("tlsCertFile", Use.READ | Use.ANY_WRITE, ("certFile", "kafka.ssl.keystore.location")),
    Option("tlsKeyFile", Use.READ | Use.ANY_WRITE, ("keyFile", "kafka.ssl.keystore.key")),
)

T = TypeVar("T")


class OptionTexts:
    """The options that a user gave for one use.

    Goes on after an error, so that the user hears of all of them at once: `hear` takes note of what a check says, and
    `say` raises it.
    """

    def __init__(self, given: Mapping[str, str], use: Use) -> None:
        self.complaints: list[str] = []
        self._use = use
        self._texts: dict[str, str] = {}
        canonical = {option.name.lower(): option for option in OPTIONS}
        for name, value in given.items():
            option = canonical.get(name.lower())
            if option is not None and use not in option.uses and _elsewhere(name.lower(), use) is None:
                self.complaints.append(f"the option {option.name} is for {_in_words(option.uses)} only")
            elif option is None or use not in option.uses:
                self.complaints.append(f"there is no option {quoted(name)}{_hint(name.lower(), use)}")
            else:
                self._texts[option.name] = str(value).strip()

    def hear(self, otherwise: T, check: Callable[..., T], *arguments: Any) -> T:
        """What the check returns, or something in its place that nobody will ever see."""
        try:
            return check(*arguments)
        except ConfigError as error:
            self.complaints.append(str(error))
            return otherwise

    def say(self) -> None:
        """Raise one `ConfigError` with all that is wrong, if anything is."""
        say_all(self.complaints)

    # ---- values --------------------------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        return name in self._texts

    def get(self, name: str) -> str | None:
        return self._texts.get(name)

    def required(self, name: str, example: str) -> str:
        value = self._texts.get(name)
        if not value:
            raise ConfigError(f'the option {name} is missing: .option("{name}", "{example}")')
        return value

    def one_of(self, names: tuple[str, ...], example: str) -> str:
        """The one of these that was given; they are ways to say the same thing."""
        given = [name for name in names if self._texts.get(name)]
        if not given:
            others = ", ".join(names[1:-1])
            raise ConfigError(
                f'the option {names[0]} is missing: .option("{names[0]}", "{example}");'
                f" {others} or {names[-1]} can take its place"
            )
        if len(given) > 1:
            raise ConfigError(f"{' and '.join(given)} contradict each other: give one of them")
        return given[0]

    def flag(self, name: str, *, default: bool) -> bool:
        return self.choice(name, ("true", "false") if default else ("false", "true")) == "true"

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of some words; the first is the default."""
        text = self._texts.get(name, choices[0])
        if text.lower() not in choices:
            *others, last = choices
            raise ConfigError(
                f"{name} is {', '.join(others)} or {last}, not {quoted(text)}{_close(text, choices)}"
            )
        return text.lower()

    def number(self, name: str, low: int, high: int, default: T) -> int | T:
        text = self._texts.get(name)
        if text is None:
            return default
        number = parse_count(text)
        if number is None or not low <= number <= high:
            raise ConfigError(f"{name} is a number from {low} to {high}, not {quoted(text)}")
        return number

    def duration_ms(self, name: str, default_ms: int) -> int:
        """As Spark writes it: `500ms`, `30s`, `15m`, `2h`; a bare number has milliseconds."""
        text = self._texts.get(name)
        if text is None:
            return default_ms
        found = re.fullmatch(r"(\d{1,12})\s*(ms|s|m|min|h|d)?", text.lower(), re.ASCII)
        if found is None:
            raise ConfigError(f"{name} is a time such as 500ms, 30s, 15m or 2h, not {quoted(text)}")
        return int(found[1]) * _UNITS_MS[found[2] or "ms"]


_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def say_all(complaints: list[str]) -> None:
    if len(complaints) > 1:
        complaints = [f"{len(complaints)} things are wrong:", *complaints]
    if complaints:
        raise ConfigError("\n  ".join(complaints))


def named(name: str, check: Callable[..., T], *arguments: Any) -> T:
    """For checks that do not know that they are asked about an option."""
    try:
        return check(*arguments)
    except BolideError as error:
        raise ConfigError(f"{name}: {error}") from error


def quoted(value: object) -> str:
    """What the user wrote, for an error: escaped, and not all of it when it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def _elsewhere(name: str, use: Use) -> str | None:
    """What is called so by others."""
    found = (one for one in OPTIONS if use in one.uses and name in map(str.lower, one.elsewhere))
    return next((option.name for option in found), None)


def _hint(name: str, use: Use) -> str:
    if (known := _elsewhere(name, use)) is not None:
        return f": it is called {known} here"
    names = {option.name.lower(): option.name for option in OPTIONS if use in option.uses}
    close = difflib.get_close_matches(name[:SHOWN_MAX], names, n=1, cutoff=CLOSE)
    return f": did you mean {names[close[0]]}?" if close else f"; there are {', '.join(names.values())}"


def _close(text: str, choices: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(text.lower()[:SHOWN_MAX], choices, n=1, cutoff=CLOSE)
    return f": did you mean {close[0]}?" if close else ""


def _in_words(uses: Use) -> str:
    return " and ".join(words for use, words in _USES_IN_WORDS.items() if use in uses)
