"""Whether power loss may have taken the end of a record's numbers, which no checksum covers."""

from bolide.record.codec import RecordHead, inspect_record
from bolide.record.layout import CHECK_SEALED, FLAG_AT, LOG_OFFSET_AT, SYS_FLAG_AT
from bolide.store.log import CommitLog

_QUEUE_ID_END, _QUEUE_OFFSET_END, _NUMBERS_END = FLAG_AT, LOG_OFFSET_AT, SYS_FLAG_AT
"""Where numbers of a record end, which is where the next ones begin; the last one is its log offset."""

SECTOR_BYTES = 512


def may_be_torn(commit_log: CommitLog, log_offset: int) -> bool:
    """Whether a sector ends among the numbers of the record here with zeros.

    What was lost of the sector is zero, up to its end, and may be why the numbers do not fit.
    """
    segment = commit_log.segment_of(log_offset)
    assert segment is not None
    position = log_offset - segment.base
    if isinstance(inspect_record(segment.view, position, segment.size, CHECK_SEALED), RecordHead):
        return False  # a checksum covers them after all
    sector_end = SECTOR_BYTES - position % SECTOR_BYTES  # from the beginning of the record
    for number_end in (_QUEUE_ID_END, _QUEUE_OFFSET_END):
        if number_end <= sector_end <= _NUMBERS_END:
            lost = segment.view[position + number_end - 1 : position + sector_end]
            if not any(lost):
                return True
    return False
