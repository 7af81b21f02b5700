"""How `bolide store inspect` shows what is in a store: tables for people, one JSON document for programs."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bolide.cli.output import write_line, write_table
from bolide.cli.since import format_moment
from bolide.cli.spans import format_bytes

if TYPE_CHECKING:
    from bolide.offline.survey import QueueSurvey, RecordCount, Survey


def _moment(moment_ms: int) -> str:
    return format_moment(moment_ms) if moment_ms > 0 else "-"


def print_survey(found: "Survey", counts: "dict[tuple[str, int], RecordCount] | None") -> None:
    state = "a broker is running on it" if found.is_running else "clean stop"
    if not found.is_running and not found.is_clean:
        state = "unclean stop: the next start recovers"
    write_line(f"store      {found.root} ({state})")
    write_line(
        f"on disk    {format_bytes(found.allocated_bytes)} of {format_bytes(found.size_bytes)} apparent"
    )
    first_ms = found.segments[0].first_ms if found.segments else 0
    write_line(
        f"log        {found.log_start} to {found.log_end}, {_moment(first_ms)} to {_moment(found.last_ms)}"
    )
    if found.checkpoint is not None:
        times = found.checkpoint
        write_line(f"checkpoint log {_moment(times.log_ms)}, queues {_moment(times.queues_ms)},", end=" ")
        write_line(f"index {_moment(times.index_ms)}")
    for path, what in found.odd:
        write_line(f"odd        {path} {what}")
    write_line()
    write_table(
        ("SEGMENT", "FIRST STORED", "ON DISK"),
        [(one.file, _moment(one.first_ms), format_bytes(one.allocated_bytes)) for one in found.segments],
    )
    write_line()
    extra = () if counts is None else ("RECORDS", "BYTES")
    write_table(
        ("TOPIC", "QUEUE", "FIRST", "NEXT", "MESSAGES", "LAST STORED", *extra),
        [
            (
                *(one.topic, one.queue_id, one.offset_min, one.offset_max, one.messages),
                _moment(one.last_ms),
                *(() if counts is None else _counted(counts, one.topic, one.queue_id)),
            )
            for one in found.queues
        ],
    )
    if found.groups:
        write_line()
        write_table(
            ("GROUP", "TOPIC", "QUEUE", "OFFSET", "LAG"),
            [(one.group, one.topic, one.queue_id, one.offset, one.lag) for one in found.groups],
        )
    if found.index:
        write_line()
        write_table(
            ("INDEX", "ENTRIES", "BEGIN", "END", "ON DISK"),
            [
                (
                    *(one.file, one.entries, _moment(one.header.begin_ms), _moment(one.header.end_ms)),
                    format_bytes(one.allocated_bytes),
                )
                for one in found.index
            ],
        )
    if found.tables:
        write_line()
        write_table(
            ("TABLE", "VERSION", "CHANGED"),
            [
                (
                    name,
                    "-" if version is None else version.counter,
                    _moment(version.timestamp_ms if version else 0),
                )
                for name, version in found.tables.items()
            ],
        )


def _counted(counts: "dict[tuple[str, int], RecordCount]", topic: str, queue_id: int) -> tuple[int, int]:
    count = counts.get((topic, queue_id))
    return (0, 0) if count is None else (count.records, count.size_bytes)


def survey_as_json(found: "Survey", counts: "dict[tuple[str, int], RecordCount] | None") -> dict[str, Any]:
    def queue(one: "QueueSurvey") -> dict[str, Any]:
        members = {**asdict(one), "messages": one.messages}
        if counts is not None:
            members["records"], members["size_bytes"] = _counted(counts, one.topic, one.queue_id)
        return members

    return {
        "root": found.root,
        "clean": found.is_clean,
        "running": found.is_running,
        "size_bytes": found.size_bytes,
        "allocated_bytes": found.allocated_bytes,
        "log": {
            "start": found.log_start,
            "end": found.log_end,
            "segment_bytes": found.segment_bytes,
            "last_ms": found.last_ms,
            "segments": [asdict(one) for one in found.segments],
        },
        "queues": [queue(one) for one in found.queues],
        "groups": [asdict(one) for one in found.groups],
        "index": [
            {
                "file": one.file,
                "entries": one.entries,
                **one.header._asdict(),
                "size_bytes": one.size_bytes,
                "allocated_bytes": one.allocated_bytes,
            }
            for one in found.index
        ],
        "checkpoint": None if found.checkpoint is None else asdict(found.checkpoint),
        "tables": {name: None if one is None else one.as_json() for name, one in found.tables.items()},
        "odd": [{"file": path, "what": what} for path, what in found.odd],
    }
