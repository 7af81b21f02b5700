"""Every behaviour of the check-list is shown by a test, or has a reason why not."""

from tests.checklist.coverage import covered
from tests.checklist.ids import IDS, NOT_COVERED


def test_every_id_is_covered_or_has_a_reason() -> None:
    assert IDS.keys() - covered().keys() - NOT_COVERED.keys() == set()


def test_no_reason_is_given_for_what_is_not_listed() -> None:
    assert NOT_COVERED.keys() - IDS.keys() == set()
