"""A short run of every target, what was ever found, and whether a run would find anything at all."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide.model.errors import InvalidRequest
from tests.fuzz import campaign
from tests.fuzz.campaign import Block, blocks, explore, explore_with_workers, inputs_of, on_guard, try_input
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

INPUTS = 150_000
SEED = 20
FOUND = sorted((Path(__file__).parent / "found").glob("*.hex"))
"""Each named by its target, then by what it did."""


@pytest.fixture(autouse=True)
def guarded() -> Iterator[None]:
    with on_guard():
        yield


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_a_parser(name: str) -> None:
    share = INPUTS * TARGETS[name].share // sum(target.share for target in TARGETS.values())
    tally = explore([TARGETS[name]], max(20, share), SEED)
    assert tally.findings == [], "\n".join(map(str, tally.findings))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_once_is_mended(path: Path) -> None:
    target = TARGETS[path.stem.partition("--")[0]]
    assert try_input(target, bytes.fromhex(path.read_text()))[1] == ""


# ---- would it find anything? --------------------------------------------------------------------------------


def _planted(data: bytes) -> bytes:
    if len(data) > 4 and data[0] != ord("v"):
        raise InvalidRequest("it does not begin as it should")
    if b"\xff\xff" in data:
        raise IndexError("planted")
    return data


def planted(**changes: object) -> Target:
    return Target(**{"name": "planted", "corpus": lambda: [b"valid input"], "read": _planted,
                     "refuses": (InvalidRequest,), **changes})  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture
def among_targets(monkeypatch: pytest.MonkeyPatch) -> Target:
    target = planted(read=lambda data: os._exit(3) if b"\xff\xff" in data else None)
    monkeypatch.setitem(TARGETS, "planted", target)
    return target


def test_an_error_that_is_no_refusal_is_found(among_targets: Target) -> None:
    (finding,) = explore([planted()], 5000, 1).findings
    assert b"\xff\xff" in finding.data
    assert "IndexError" in finding.why
    assert f"--target planted --replay {finding.data.hex()}" in str(finding)


def test_an_input_that_takes_long_is_found_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SECONDS_MAX", 0.05)

    def forever(data: bytes) -> None:
        while True:
            data = data[:]

    assert "it takes more than" in try_input(planted(read=forever), b"")[1]


def test_an_input_that_takes_much_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # what other tests have needed counts no more
    monkeypatch.setattr(campaign, "GROWTH_KIB_MAX", 0)
    grown: list[bytes] = []
    target = planted(read=lambda data: grown.append(b"x" * 2**26))
    assert any("of memory" in try_input(target, b"")[1] for _ in range(4))


def test_a_process_that_ends_is_found_with_its_input_and_the_rest_is_tried(among_targets: Target) -> None:
    tally = explore_with_workers([among_targets], 1200, 1, workers=2)
    (finding,) = tally.findings
    assert b"\xff\xff" in finding.data
    assert "the process ended" in finding.why
    assert tally.total == 1200


def test_the_same_seed_gives_the_same_inputs() -> None:
    target = TARGETS["java_json"]
    one, again, other = (list(inputs_of(target, seed, Block("java_json", 3, 50))) for seed in (1, 1, 2))
    assert one == again != other


def test_inputs_go_to_targets_by_their_shares() -> None:
    given: dict[str, int] = {}
    for block in blocks(list(TARGETS.values()), 1_000_000):
        given[block.target] = given.get(block.target, 0) + block.inputs
    assert 990_000 < sum(given.values()) <= 1_000_000
    assert given["java_json"] >= 49 * given["offline.store"] > 0
