"""Input/output errors: every step of a store's life fails once, and no promise is broken.

What fails is told in words, nothing is acknowledged that the error covers, and the next start has everything that was
acknowledged before.
"""

import errno
from collections import Counter

import pytest

from tests.crash.errors import count_steps, fail_step
from tests.crash.ledger import Broken

pytestmark = pytest.mark.timeout(1200)

SEEDS = (0, 1, 2, 3, 35)
"""The last one deletes a topic that gets messages afterwards."""
KINDS = ("create", "write", "sync", "rename", "sync_dir", "make_dir", "delete")
NO_SPACE = ("create", "write", "make_dir")
"""Steps that a full disk refuses too."""


@pytest.mark.parametrize("seed", SEEDS)
def test_any_step_may_fail(seed: int) -> None:
    steps = count_steps(seed)
    for number, kind in enumerate(steps):
        for error in (errno.EIO, errno.ENOSPC) if kind in NO_SPACE else (errno.EIO,):
            try:
                fail_step(seed, number, error)
            except Broken as broken:
                pytest.fail(
                    f"seed {seed}, step {number} ({kind}) fails with {errno.errorcode[error]}: {broken}"
                )


def test_every_kind_of_step_is_among_those_that_fail() -> None:
    count = sum((Counter(count_steps(seed)) for seed in SEEDS), Counter[str]())
    assert set(count) >= set(KINDS)
    assert min(count[kind] for kind in KINDS) >= 5
