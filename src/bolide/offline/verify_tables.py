"""Are the small files of a store readable and plausible: the checkpoint and the tables in `config/`?

They carry no checksum.  A value that is merely another value is not noticed; what cannot be true is: text that is no
JSON, a table of another shape, times that no message has, progress of a group behind the end of its queue.
"""

import os

from bolide.model.errors import InvalidRequest, StoreError
from bolide.offline.damage import Findings
from bolide.offline.files import StoreFiles
from bolide.offline.table_files import Tables, read_tables
from bolide.store.checkpoint import FILE_BYTES as CHECKPOINT_BYTES
from bolide.store.checkpoint import MARK_AT, Checkpoint
from bolide.store.deletions import FILE as DELETIONS_FILE
from bolide.store.deletions import decode_deletions

FUTURE_MS = 1000
"""The original notes a time a moment after it took it."""

NEEDED_BY_NOBODY = "consumerFilter.json"

_BAD_CHECKPOINT = "after an unclean stop a start may look at too little of the log, or at all of it"


def check_config(store: StoreFiles, findings: Findings) -> Tables:
    """Report files that cannot be read; returns what the others say."""
    for path in store.config_paths():
        states = {name: table_state(store, name) for name in (path, path + ".bak")}
        for name, state in states.items():
            if not state:
                continue
            other = states[path + ".bak" if name == path else path]
            if name != path:
                consequence = "nothing to fall back to when the file itself is damaged"
            elif not other and store.disk.exists(path + ".bak"):
                consequence = "the broker uses the older copy"
            elif os.path.basename(path) == NEEDED_BY_NOBODY:
                consequence = "the broker begins without it"
            else:
                consequence = "the broker does not start"
            findings.damage(store.name(name), 0, state, consequence)
    return read_tables(store.disk, store.config_paths())


def table_state(store: StoreFiles, path: str) -> str:
    """What is wrong with a file; empty when nothing is, or when there is none."""
    try:
        data = store.disk.read_whole(path)
        if data is None:
            return ""
        if not data:
            return "the file is empty"
        Tables().take(os.path.basename(path).removesuffix(".bak"), data)
    except (InvalidRequest, StoreError) as error:
        return str(error)
    return ""


def check_deletions(store: StoreFiles, findings: Findings) -> None:
    """The list of deleted topics carries a checksum."""
    try:
        data = store.disk.read_whole(store.path(DELETIONS_FILE))
    except StoreError as error:
        findings.damage(DELETIONS_FILE, 0, str(error), "the broker does not start")
        return
    if data and decode_deletions(data) is None:
        findings.damage(DELETIONS_FILE, 0, "is damaged", "messages of deleted topics may come back")
    elif data and store.is_foreign:
        findings.note(DELETIONS_FILE, "counts no more, since Apache RocketMQ has used the store")


def check_offsets(store: StoreFiles, tables: Tables, findings: Findings) -> None:
    """Groups are never behind the end of a queue, unless messages were lost with the machine."""
    path = store.name(store.path("config", "consumerOffset.json"))
    for (group, topic, queue_id), offset in (tables.offsets or {}).items():
        queue = store.queues.get((topic, queue_id))
        if queue is None or offset <= queue.end():
            continue
        what = f"the group {group} is at {offset} of {topic}/{queue_id}, which ends at {queue.end()}"
        if store.is_clean:
            findings.damage(path, 0, what, "the group does not get the messages before that offset")
        else:
            findings.note(path, what + "; messages may be waiting for the next start")


def check_checkpoint(store: StoreFiles, findings: Findings) -> Checkpoint | None:
    """The checkpoint, as far as it can be one."""
    try:
        data = store.disk.read_whole(store.path("checkpoint"))
    except StoreError as error:
        findings.damage("checkpoint", 0, str(error), "the broker does not start")
        return None
    if data is None:
        return None
    if len(data) != CHECKPOINT_BYTES:
        what = f"has {len(data)} bytes where a checkpoint has {CHECKPOINT_BYTES}"
        findings.damage("checkpoint", 0, what, _BAD_CHECKPOINT)
    says = Checkpoint.decode(data)
    if says.mark is None and any(data[MARK_AT:]):
        text = "the mark is damaged"
        if store.is_foreign:
            text = "the mark does not know the times: the original has run on the store, or they are damaged"
        findings.note("checkpoint", text + "; the next recovery looks at more of the log")
    for at in (0, 8, 16):
        if len(data) >= at + 8 and data[at] & 0x80:
            findings.damage("checkpoint", at, "a time is negative", _BAD_CHECKPOINT)
    return says


def check_times(times: Checkpoint, newest_ms: int, findings: Findings) -> None:
    """Whether messages of these times exist; `newest_ms` is the newest one's, 0 when there is none."""
    if newest_ms and times.log_ms == times.queues_ms == 0:
        findings.note("checkpoint", "it says nothing: a recovery would look at the whole log")
    parts = (("log", 0, times.log_ms), ("queues", 8, times.queues_ms), ("index", 16, times.index_ms))
    for what, at, value in parts:
        if newest_ms and value > newest_ms + FUTURE_MS:
            text = f"the time of the {what} is {value}, but the newest message is of {newest_ms}"
            findings.damage("checkpoint", at, text, _BAD_CHECKPOINT)
