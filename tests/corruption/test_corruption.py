"""A thousand spoiled stores: nothing wrong is delivered, what is undamaged is readable, the damage is named.

Records carry the checksum of the whole, and readers ask for it, so every byte of them counts (enabledAppendPropCRC,
forceVerifyPropCRC).  The tables are plain text without any: a value that became another value cannot be noticed.

Every case is drawn from a number.  To look at some again:

    BOLIDE_CORRUPTION_SEED=17 BOLIDE_CORRUPTION_COUNT=1 .venv/bin/pytest tests/corruption
"""

import logging
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from bolide.model.errors import StoreError
from bolide.offline.table_files import read_tables
from bolide.store.checkpoint import Checkpoint
from bolide.store.disk_os import OsDisk
from tests.corruption.flaws import KINDS, Flaw, draw
from tests.corruption.scene import Record, Scene, scratch_folder

pytestmark = pytest.mark.timeout(1800)  # all cases are one fixture

SEED = int(os.environ.get("BOLIDE_CORRUPTION_SEED", "0"))
COUNT = int(os.environ.get("BOLIDE_CORRUPTION_COUNT", "500"))
SHOWN = 20

WRONG, MISSING, UNNAMED, UNCLEAR, UNREPAIRED = "wrong", "missing", "unnamed", "unclear", "unrepaired"

Problem = tuple[str, str]
"""Which claim does not hold, and how that shows."""


@dataclass
class Campaign:
    """What came of all cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    problems: dict[str, list[str]] = field(default_factory=dict)

    def hold(self, claim: str) -> None:
        found = self.problems.get(claim, [])
        listed = "\n".join(found[:SHOWN])
        assert not found, f"{len(found)} cases, the first ones:\n{listed}\n({dict(self.outcomes)})"


@pytest.fixture(scope="module", params=[True, False], ids=["clean stop", "killed"])
def campaign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """All cases, once; the tests below are its claims."""
    logging.disable(logging.CRITICAL)  # a line per damage would be many
    folder = scratch_folder(tmp_path_factory.mktemp("corruption"))
    campaign = Campaign()
    try:
        scene = Scene(folder, clean=request.param)
        for seed in range(SEED, SEED + COUNT):
            flaw = draw(seed, scene.files)
            campaign.outcomes[flaw.kind] += 1
            for claim, text in _examine(scene, flaw, campaign.outcomes):
                campaign.problems.setdefault(claim, []).append(f"seed {seed}, {flaw.how}: {text}")
    finally:
        logging.disable(logging.NOTSET)
        shutil.rmtree(folder, ignore_errors=True)
    return campaign


def test_every_kind_of_file_was_spoiled(campaign: Campaign) -> None:
    if COUNT >= 500:
        assert {kind for kind in KINDS if campaign.outcomes[kind] == 0} <= {"abort"}
        assert campaign.outcomes["opened"] > campaign.outcomes["refused"] > 0


def test_nothing_wrong_is_delivered(campaign: Campaign) -> None:
    """Neither by the store as it is nor after a repair."""
    campaign.hold(WRONG)


def test_undamaged_records_are_readable(campaign: Campaign) -> None:
    campaign.hold(MISSING)


def test_the_damage_is_named_unless_it_hit_bytes_without_meaning(campaign: Campaign) -> None:
    campaign.hold(UNNAMED)


def test_a_store_that_does_not_open_says_which_file_and_what_to_do(campaign: Campaign) -> None:
    campaign.hold(UNCLEAR)


def test_a_repaired_store_is_sound_and_has_every_undamaged_record(campaign: Campaign) -> None:
    campaign.hold(UNREPAIRED)


# ---- one case ---------------------------------------------------------------------------------------------------


def _examine(scene: Scene, flaw: Flaw, outcomes: Counter[str]) -> Iterator[Problem]:
    """Everything that is wrong about one case."""
    untouched = {record.data for record in scene.records if not _is_touched(record, flaw)}
    scene.spoil(flaw)
    found = scene.examine()
    noticed = bool(found.findings.damages) or found.findings.notes != scene.baseline.findings.notes
    outcomes["noticed" if noticed else "not noticed"] += 1
    store = scene.open()
    if isinstance(store, StoreError):
        outcomes["refused"] += 1
        if not _is_clear(str(store), scene, flaw):
            yield UNCLEAR, str(store)
    else:
        outcomes["opened"] += 1
        delivered = scene.delivered(store)
        scene.close(store)
        yield from _wrong(scene, delivered)
        for record in scene.records:
            if (
                record.data in untouched
                and record.data not in delivered
                and _must_be_there(scene, record, flaw)
            ):
                yield MISSING, f"{record.topic}/{record.queue_id} number {record.number}"
    if not noticed and (isinstance(store, StoreError) or not _is_meaningless(scene, flaw)):
        yield UNNAMED, "verify found nothing"
    if found.findings.damages:
        yield from _examine_repair(scene, flaw, untouched, outcomes)


def _examine_repair(
    scene: Scene, flaw: Flaw, untouched: set[bytes], outcomes: Counter[str]
) -> Iterator[Problem]:
    """The same store again, repaired before it is opened."""
    scene.spoil(flaw)
    scene.repair()
    left = scene.examine().findings.damages
    if left and flaw.kind != "config":
        yield UNREPAIRED, f"damage is left: {left[0]}"
    store = scene.open()
    if isinstance(store, StoreError):
        yield UNREPAIRED, f"it does not open: {store}"
        return
    delivered = scene.delivered(store)
    scene.close(store)
    outcomes["repaired"] += 1
    yield from _wrong(scene, delivered)
    missing = untouched - set(delivered)
    if missing:
        yield UNREPAIRED, f"{len(missing)} undamaged messages are gone"


def _is_touched(record: Record, flaw: Flaw) -> bool:
    path, at = record.segment
    return flaw.touches(path, at, at + len(record.data))


def _wrong(scene: Scene, delivered: list[bytes]) -> Iterator[Problem]:
    """Delivered records that are not, byte for byte, what was stored, and those that come twice."""
    originals = {record.data for record in scene.records}
    for data in delivered:
        if data not in originals:
            yield WRONG, f"{data[:60].hex()}…"
    if len(set(delivered)) != len(delivered):
        yield WRONG, "a record was delivered twice"


def _must_be_there(scene: Scene, record: Record, flaw: Flaw) -> bool:
    """Whether a start must bring an undamaged record back without a repair.

    Not one of a queue with damaged entries, and not one behind damage in the log, where a recovery may end.
    """
    folder = f"consumequeue/{record.topic}/{record.queue_id}/"
    if any(name.startswith(folder) for name in flaw.changed):
        return False
    damaged = [other.log_offset for other in scene.records if _is_touched(other, flaw)]
    return flaw.kind != "log" or record.log_offset < min(damaged, default=0)


def _is_clear(text: str, scene: Scene, flaw: Flaw) -> bool:
    """Whether an operator can do something with the error: it names the file, or its folder, and a way out."""
    names = [str(scene.root / name) for name in flaw.changed]
    is_named = any(name in text or os.path.dirname(name) in text for name in names)
    return is_named and bool(re.search(r"set it|repair|put back", text))


def _is_meaningless(scene: Scene, flaw: Flaw) -> bool:
    """Whether the flaw hit bytes that say nothing, or text that is still as good as before."""
    if flaw.kind in ("lock", "abort"):
        return True  # only whether they exist and are locked counts
    if flaw.kind == "config":  # no checksum: a value became another value
        scene.spoil(flaw)
        paths = [str(scene.root / name) for name in flaw.changed]
        return read_tables(OsDisk(), paths).versions != {}
    return all(_says_nothing(scene, flaw, path) for path in flaw.changed)


def _says_nothing(scene: Scene, flaw: Flaw, path: str) -> bool:
    """Whether no record, entry or header of the file was touched."""
    if path.startswith("commitlog/"):
        return not any(_is_touched(record, flaw) for record in scene.records)
    before, after = flaw.changed[path]
    if path == "checkpoint":  # without its mark it is one of the original's, and true
        says = Checkpoint.decode(before)
        return Checkpoint.decode(after) in (says, replace(says, mark=None))
    used = len(before.rstrip(b"\0"))
    return before[:used] == after[:used]
