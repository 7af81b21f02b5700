"""SECURITY.md names limits that exist, with the numbers that they have."""

import re
from pathlib import Path

from bolide.model import limits
from tests.docs.limits_page import amount

PAGE = Path(__file__).resolve().parents[2] / "SECURITY.md"
NAMED = re.compile(r"`([A-Z][A-Z_]+)` \(([^)]+)\)")


def test_every_limit_in_the_table_of_attacks_is_the_codes_own() -> None:
    known = {name: amount(name, limit) for name, limit in limits.table().items()}
    named = NAMED.findall(PAGE.read_text())
    assert len(named) > 20
    assert {name: (told, known.get(name)) for name, told in named if told != known.get(name)} == {}
