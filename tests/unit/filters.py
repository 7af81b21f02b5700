"""A filter that must look into records, for tests of whatever carries filters."""

from dataclasses import dataclass

from bolide.model.filter import Filter


@dataclass(frozen=True, slots=True)
class Contains:
    """Wants records that contain these bytes."""

    text: bytes

    def __call__(self, record: bytes | memoryview) -> bool:
        return self.text in bytes(record)


def containing(text: bytes, codes: frozenset[int] | None = None) -> Filter:
    return Filter(codes, Contains(text))
