"""Is what is stored, what is archived and what is consumed the same?  Decided queue by queue, from spans of offsets.

Offsets of a queue are dense: a broker gives them out one by one, and only the oldest go.  So every offset between the
ends of a queue is a message, and one that is in no list is a gap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bolide.model.offsets import MessageQueue
from bolide.pipeline.archive.spans import Span, common, merged, without

OFFSET_MAX = 2**63 - 1


class Kind(StrEnum):
    """What is not as it should be; the values are for programs, `MEANINGS` for people."""

    NOT_ARCHIVED = "not-archived"
    LOST = "lost"
    NOT_COMPARED = "not-compared"
    BEYOND = "beyond-the-end"
    MISSING = "missing"
    DOUBLED = "doubled"
    FOREIGN = "foreign"
    CHANGED = "changed"
    DIFFERS = "differs"
    NOT_CONSUMED = "not-consumed"
    CONSUMED_BEYOND = "consumed-beyond"


MEANINGS = {
    Kind.NOT_ARCHIVED: "stored, and not archived",
    Kind.LOST: "not archived, and not stored any more",
    Kind.NOT_COMPARED: "archived, and not compared: no broker that can be reached has the queue; was its topic deleted?"
    " Say so with --deleted",
    Kind.BEYOND: "archived, and the queue ends before: was the topic made again?",
    Kind.MISSING: "in the manifest, and in no file",
    Kind.DOUBLED: "in files more than once",
    Kind.FOREIGN: "in files, and not in the manifest",
    Kind.CHANGED: "in files with other contents than the manifest says",
    Kind.DIFFERS: "archived with other contents than stored",
    Kind.NOT_CONSUMED: "stored, and not consumed",
    Kind.CONSUMED_BEYOND: "consumed, and the queue ends before: was the topic made again?",
}


@dataclass(frozen=True, order=True)
class Finding:
    span: Span
    kind: Kind


@dataclass
class QueueAudit:
    """One queue: what each of the three says."""

    queue: MessageQueue
    stored: Span | None = None
    """None when no broker has the queue: its topic was deleted, its broker is away, or it is of another cluster."""
    archived: Sequence[Span] = ()
    consumed: int | None = None
    """Where the group goes on; None when it has not begun."""
    is_deleted: bool = False
    """Whether somebody says that the topic was deleted, and no broker has it: there is nothing to compare."""
    findings: list[Finding] = field(default_factory=list)

    def add(self, kind: Kind, spans: Iterable[Span]) -> None:
        self.findings += [Finding(span, kind) for span in merged(spans)]


@dataclass(frozen=True, order=True)
class FileFinding:
    path: str
    problem: str
    """missing, unreadable, or foreign."""


@dataclass
class Audit:
    queues: list[QueueAudit]
    files: list[FileFinding] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        return not self.files and not any(one.findings for one in self.queues)


def compare_archived(one: QueueAudit) -> None:
    """What has expired is no gap if it is archived; what was gone before the archive began is none of its business.

    From there on every message is: one that was stored behind the archive's end and has expired is lost to it.
    """
    stored = [] if one.stored is None else [one.stored]
    one.add(Kind.NOT_ARCHIVED, without(stored, one.archived))
    if one.archived:
        end = one.archived[-1].end if one.stored is None else max(one.archived[-1].end, one.stored.end)
        hull = Span(one.archived[0].first, end)
        one.add(Kind.LOST, without(without([hull], one.archived), stored))
    if one.stored is None and not one.is_deleted:
        one.add(Kind.NOT_COMPARED, one.archived)
    if one.stored is not None:
        one.add(Kind.BEYOND, common(one.archived, [Span(one.stored.end, OFFSET_MAX)]))


def compare_consumed(one: QueueAudit) -> None:
    """Up to the group's offset everything counts as consumed."""
    if one.stored is None:
        return
    begin = one.stored.first if one.consumed is None else one.consumed
    one.add(Kind.NOT_CONSUMED, [Span(begin, one.stored.end)])
    one.add(Kind.CONSUMED_BEYOND, [Span(one.stored.end, begin)])
