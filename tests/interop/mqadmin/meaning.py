"""What an mqadmin command has said, without what differs in every run: addresses, times, ids, the order of rows."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Reading = Callable[[str], list[str]]
"""From what was printed to what it means; equal lists mean the same."""

_SUBSTITUTIONS = (
    (r"(?<!\n)MessageTrack \[", "\nMessageTrack ["),
    (r"\nSee https?:\S+ for further details\.?", ""),
    (r"\d{4}-\d\d-\d\d[ ,#]\d\d:\d\d:\d\d([.,:]\d+)?|\b1[5-9]\d{11}\b|\b202\d{11,14}\b", "TIME"),
    (r"\b[0-9A-F]{32}\b|\b[0-9A-F]{40,56}\b", "ID"),
    (r"\b\d+\.\d+\.\d+\.\d+@[\w#.-]+", "CLIENT"),
    (r"\b\d+\.\d+\.\d+\.\d+:\d+", "ADDRESS"),
    (r"\bV\d+_\d+_\d+\w*", "VERSION"),
    # What is said about an error is ours to say; its code is not.
    (r"(CODE: ?\d+)\s+DESC: ?.*", r"\1"),
    # Messages are as long as the properties that a server adds, and lie where that takes them.
    (r"(?<=storeSize=)\d+|(?<=physicOffset=)\d+|(?<=physicSize=)\d+|(?<=commitLogOffset=)\d+", "N"),
    (r"(CommitLog Offset: +|@ID@)\d+", r"\1N"),
    (r"(?<=[{ ])(WAIT=true|TRACE_ON=true|MSG_REGION=\w+|witness=[\w-]+)(, |(?=\}))|spentTimeMills=\d+", ""),
    (r", \}", "}"),
    # How many topics there are, built-in ones too; how fast things were; where a file was written.
    (r"(?<=OK, )\d+|(?<=Consume TPS: )[\d.]+", "N"),
    (r"/\S*/(\w+\.\w+)", r"\1"),
)

_NOISE = re.compile(
    r"^\s*at [\w.$/<>-]+\(|^\s*\.\.\. \d+ more|^For more information|^RocketMQLog|^SLF4J"
    # The tool's own clients, which a server sees or does not see yet; topics that not every version has for itself.
    r"|TOOLS_CONSUMER|__MONITOR_CONSUMER|CLIENT_INNER_PRODUCER|_ROCKSDB_|_TRANS_\w*HALF_TOPIC|rmq_sys_"
    r"|TRANS_CHECK_MAX_TIME_TOPIC"
    # Offsets in retry topics, which clients have committed or not; a group that 5.5 makes again when asked for it;
    # a setting that only 4.9 has, and needs.
    r"|^%RETRY%\S+\s+broker-a|^brief-group$|^filterServerNums$"
)

_THEIRS_ALONE = re.compile(
    # Times of single requests; names that hold folders; one that has two spellings.
    r"putLatency|putMessageDistributeTime|\w+EntireTimeMax|putMessageFailedTimes|commitLogDirCapacity"
    r"|commitLogDiskRatio_|getTransfer+edTps|brokerVersion$"
)


def rows(printed: str) -> list[str]:
    """Its lines, sorted: the tool walks over hash tables."""
    return sorted(_lines(printed))


def words(printed: str) -> list[str]:
    """Without numbers, and each line once: for figures of time and of speed, told again and again."""
    return sorted({re.sub(r"-?\d+(\.\d+)?", "N", line) for line in _lines(printed)})


def headings(printed: str) -> list[str]:
    """Only the headings, and whether there was an error: what is under them are the threads of a process."""
    return sorted({line for line in _lines(printed) if line.startswith("#") or "CODE" in line})


def figures(printed: str) -> list[str]:
    """The names of figures, whatever their values; without those that the original alone has."""
    names = {re.split(r"[:=]", line, maxsplit=1)[0].strip() for line in _lines(printed)}
    return sorted(name for name in names if not _THEIRS_ALONE.match(name))


def json_keys(printed: str) -> list[str]:
    """What is there in JSON, whatever its values."""
    return sorted(set(_paths(json.loads(printed[printed.index("{") :]), "")))


def ends_well(printed: str) -> list[str]:
    """Only that no error is reported."""
    return [line for line in _lines(printed) if re.search(r"Exception|CODE: \d+|[Ff]ailed", line)]


def _lines(printed: str) -> list[str]:
    for pattern, replacement in _SUBSTITUTIONS:
        printed = re.sub(pattern, replacement, printed)
    squeezed = (re.sub(r"\s+", " ", line).strip() for line in printed.splitlines() if not _NOISE.search(line))
    return [line for line in squeezed if line]


def _paths(value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield path
        return
    for key, item in value.items():
        if not _NOISE.search(key):
            yield from _paths(item, f"{path}/{key}")
