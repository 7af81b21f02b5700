"""The key index: every message that a store holds is found by its unique key."""

from bolide.store.index_keys import KeyIndex
from bolide.store.index_layout import index_key, key_hash
from bolide.store.store import MessageStore
from tests.crash.ledger import Found, Queue, expect

ALWAYS = (0, 1 << 62)
_NAME = b"UNIQ_KEY\x01"


def check_keys(store: MessageStore, index: KeyIndex, found: dict[Queue, Found]) -> None:
    """Index what is left, and look for every message."""
    index.catch_up(store.log, store.log.end, 1 << 62)
    for (topic, _), (_, records) in found.items():
        for record in records:
            at = record.find(_NAME) + len(_NAME)
            word = record[at : record.index(b"\x02", at)].decode()
            offsets = index.find(key_hash(index_key(topic, word)), 64, *ALWAYS)
            log_offset = int.from_bytes(record[28:36], "big")
            expect(log_offset in offsets, f"{word} is not found: {list(offsets)} instead of {log_offset}")
