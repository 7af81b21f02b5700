"""Is a store sound?  Looks at everything in it, changes nothing, and goes on behind damage.

The log is the truth: every record is checked by itself, then queues and index files are held against the records.
What an unclean stop leaves behind, what retention has deleted and space that was only reserved are told as notes;
everything else that is not as it must be is damage, with its file, its place and what follows from it.
"""

from dataclasses import dataclass, field

from bolide.offline.damage import Findings
from bolide.offline.files import Geometry, StoreFiles
from bolide.offline.scan import Hole, LogScan, OddBlank, Progress
from bolide.offline.verify_index import IndexCheck
from bolide.offline.verify_queues import QueueCheck, QueueFix
from bolide.offline.verify_tables import (
    check_checkpoint,
    check_config,
    check_deletions,
    check_offsets,
    check_times,
)
from bolide.store.disk import ReadingDisk
from bolide.store.walk import LogWalk

LOST_SHOWN = 5
ODD_SHOWN = 20


@dataclass(slots=True)
class Examination:
    """What `verify` found, and how much it looked at."""

    findings: Findings = field(default_factory=Findings)
    holes: list[Hole] = field(default_factory=list)
    blanks: list[OddBlank] = field(default_factory=list)
    fixes: list[QueueFix] = field(default_factory=list)
    behind_end: int = 0  # how far entries point behind the end of the log, after a clean stop
    renumbered: list[tuple[int, int]] = field(default_factory=list)  # records, and the right number of each
    log_start: int = 0
    log_end: int = 0
    records: int = 0
    entries: int = 0
    index_entries: int = 0
    newest_ms: int = 0
    last_record: int = -1  # where the last record begins

    @property
    def is_sound(self) -> bool:
        return not self.findings.damages


def verify(
    disk: ReadingDisk, root: str, *, geometry: Geometry | None = None, progress: Progress | None = None
) -> Examination:
    """Look at every file of a store directory.  `progress` is told of bytes of log and index files."""
    store = StoreFiles(disk, root, geometry)
    try:
        return examine(store, progress)
    finally:
        store.close()


def size_to_verify(disk: ReadingDisk, root: str) -> int:
    """Bytes that `progress` will hear of."""
    store = StoreFiles(disk, root)
    return len(store.log.bases) * store.log.file_bytes + sum(map(disk.size_of, store.index_paths()))


def examine(store: StoreFiles, progress: Progress | None = None) -> Examination:
    """The same with the files at hand."""
    found = Examination()
    findings = found.findings
    _tell_state(store, findings)
    tables = check_config(store, findings)
    times = check_checkpoint(store, findings)
    check_deletions(store, findings)
    topics = None if tables.topics is None else frozenset(tables.topics)
    safe_ms = 0 if times is None else times.safe_ms
    queues = QueueCheck(store, found.holes, findings, topics=topics, checkpoint_ms=safe_ms)
    walk = LogWalk(queues.find, queues.mend, queues.deliver, store.deleted)
    scan = LogScan(store, walk, progress)
    found.log_start = store.log.start
    for step in scan.run():
        if isinstance(step, Hole):
            found.holes.append(step)
        elif isinstance(step, OddBlank):
            found.blanks.append(step)
            _tell_blank(store, step, findings)
        else:
            queues.compare_some()
    found.log_end, found.records = scan.end, walk.records
    found.newest_ms, found.last_record = walk.store_timestamp_ms, walk.last_record
    queues.finish(scan.end)
    found.entries, found.fixes, found.behind_end = queues.entries, queues.fixes, queues.behind_end
    found.renumbered = queues.renumbered
    _tell_holes(store, found)
    _tell_tail(store, scan, findings)
    _tell_properties(store, scan, findings)
    index_ms = 0 if times is None else times.index_ms
    index = IndexCheck(store, found.holes, findings, log_end=scan.end, index_ms=index_ms)
    index.run(progress)
    found.index_entries = index.entries
    if times is not None:
        check_times(times, found.newest_ms, findings)
    check_offsets(store, tables, findings)
    store.check()
    return found


def _tell_state(store: StoreFiles, findings: Findings) -> None:
    if store.is_locked:
        findings.note(
            "lock", "a broker is running on this store: what it writes meanwhile may look like damage"
        )
    elif not store.is_clean:
        findings.note("abort", "the last stop was not clean: the next start recovers")
    for odd in store.odd:
        if odd.harmless:
            findings.note(store.name(odd.path), odd.what)
        else:
            findings.damage(store.name(odd.path), 0, odd.what, "the broker does not start on it")


def _tell_blank(store: StoreFiles, blank: OddBlank, findings: Findings) -> None:
    base = store.log.base_of(blank.at)
    assert base is not None
    what = f"a blank record of {blank.size} bytes where {blank.room} are left in the segment"
    findings.damage(
        store.name(store.log.path(base)), blank.at - base, what, "a recovery may take it for the log's end"
    )


def _tell_holes(store: StoreFiles, found: Examination) -> None:
    for hole in found.holes:
        base = hole.at - hole.at % store.log.file_bytes
        lost = [f"{topic}/{queue_id} offset {offset}" for topic, queue_id, offset in hole.lost]
        shown = ", ".join(lost[:LOST_SHOWN]) + (
            f" and {len(lost) - LOST_SHOWN} more" if lost[LOST_SHOWN:] else ""
        )
        text = f"lost: {shown}" if lost else "no queue has a message there"
        found.findings.damage(
            store.name(store.log.path(base)),
            hole.at - base,
            f"{hole.end - hole.at} bytes are no sound records: {hole.why}",
            f"{text}; a recovery that comes by cuts the log here and loses what is behind",
        )


def _tell_properties(store: StoreFiles, scan: LogScan, findings: Findings) -> None:
    for at in list(scan.odd_properties)[:ODD_SHOWN]:
        base = at - at % store.log.file_bytes
        text = f"the properties of the record at {at - base} are no pairs: sent so, or damaged"
        findings.note(store.name(store.log.path(base)), text)
    if len(scan.odd_properties) > ODD_SHOWN:
        findings.note("commitlog", f"so are those of {len(scan.odd_properties) - ODD_SHOWN} more records")


def _tell_tail(store: StoreFiles, scan: LogScan, findings: Findings) -> None:
    """What lies behind the end of the log has no meaning, but a reader may wonder."""
    base = store.log.base_of(scan.end)
    if base is None:
        return
    if store.log.used_bytes(base) > scan.end - base:
        findings.note(
            store.name(store.log.path(base)),
            f"the log ends at {scan.end}; behind it is what a stop or a recovery has left, without meaning",
        )
