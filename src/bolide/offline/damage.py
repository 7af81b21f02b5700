"""What an examination of a store found: damage, and states that only look like it."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as it must be."""

    file: str
    at: int  # byte in the file
    what: str
    consequence: str

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "damage",
            "file": self.file,
            "at": self.at,
            "what": self.what,
            "consequence": self.consequence,
        }


@dataclass(frozen=True, slots=True)
class Note:
    """A normal state that is worth a line, such as a tail that the next start cuts."""

    file: str
    text: str

    def as_json(self) -> dict[str, object]:
        return {"kind": "note", "file": self.file, "text": self.text}


@dataclass(slots=True)
class Findings:
    """Everything found so far."""

    damages: list[Damage] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def damage(self, file: str, at: int, what: str, consequence: str) -> None:
        self.damages.append(Damage(file, at, what, consequence))

    def note(self, file: str, text: str) -> None:
        self.notes.append(Note(file, text))

    def __iter__(self) -> Iterator[Damage | Note]:
        yield from self.damages
        yield from self.notes
