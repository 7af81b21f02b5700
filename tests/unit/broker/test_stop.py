"""Stopping a broker: whatever fails on the way, the store is closed, and what could not be written is told."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.broker.parts import PARTS
from bolide.model.errors import StoreError
from bolide.store.tables.persisted import PersistedTable
from tests.unit.broker.stage import fill, serving


def fail(*_: object) -> None:
    raise RuntimeError("a bug")


async def fail_later(*_: object) -> None:
    raise RuntimeError("a bug")


OWNERS: dict[str, Callable[[Broker], object]] = {
    "write behind": lambda broker: broker._behind,
    "sync": lambda broker: broker._flusher,
    "checkpoint": lambda broker: broker._checkpointer,
    "segments": lambda broker: broker._segments,
    "deleted topics": lambda broker: broker._remover,
    **{
        build.__name__: lambda broker, number=number: broker.parts[number]  # type: ignore[misc]
        for number, build in enumerate(PARTS)
        if isinstance(build, type)
    },
}


@pytest.mark.parametrize("owner", OWNERS)
def test_the_store_is_closed_whoever_cannot_be(
    owner: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as (broker, wire):
            await fill(wire, 3)
            failing = OWNERS[owner](broker)
            close = failing.close  # type: ignore[attr-defined]
            failing.close = fail  # type: ignore[attr-defined]
        close()

    asyncio.run(main())
    assert "a bug" in caplog.text
    assert not (tmp_path / "abort").exists(), "the stop was clean"


@pytest.mark.parametrize("step", ["membership.leave", "membership.close", "dispatcher.close"])
def test_the_store_is_closed_whatever_step_fails(
    step: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as (broker, wire):
            await fill(wire, 3)
            owner, _, method = step.partition(".")
            setattr(getattr(broker.state, owner), method, fail_later)

    asyncio.run(main())
    assert "a bug" in caplog.text
    assert not (tmp_path / "abort").exists()


def test_a_stop_that_cannot_close_the_store_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(tmp_path) as (broker, wire):
            await fill(wire, 3)
            monkeypatch.setattr(broker.state.store, "_close_files", fail)

    with pytest.raises(
        StoreError, match="the store could not be closed, the next start will recover it: a bug"
    ):
        asyncio.run(main())
    assert (tmp_path / "abort").exists()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("a bug")])
def test_a_table_that_cannot_be_written_at_the_end_is_named_and_the_store_is_closed(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(table: PersistedTable) -> bool:
        if table.file.path.endswith("consumerOffset.json"):
            raise error
        return written(table)

    written = PersistedTable.persist
    monkeypatch.setattr(PersistedTable, "persist", refuse)

    async def main() -> None:
        async with serving(tmp_path):
            pass

    with pytest.raises(StoreError, match=r"could not write .*consumerOffset\.json"):
        asyncio.run(main())
    assert not (tmp_path / "abort").exists()
