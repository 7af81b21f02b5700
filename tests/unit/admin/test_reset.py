"""Whom a group's new offsets are told, queue by queue."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bolide.admin import reset
from bolide.admin.queues import Place
from bolide.admin.reset import Move, move_offsets
from bolide.model.offsets import MessageQueue

AHEAD = Move(Place(MessageQueue("orders", "broker-a", 0), "10.0.0.1:10911"), old=5, new=5, first=0, end=9)
BEHIND = Move(Place(MessageQueue("orders", "broker-a", 1), "10.0.0.1:10911"), old=2, new=5, first=0, end=9)


def asked(monkeypatch: pytest.MonkeyPatch, *, is_online: bool) -> list[tuple[int, str]]:
    """The requests that a move of both queues makes: code and queue."""
    requests: list[tuple[int, str]] = []

    async def ask(address: str, code: int, fields: dict[str, str]) -> None:
        requests.append((int(code), fields["queueId"]))

    async def members(*_: object) -> object:
        return SimpleNamespace(is_online=is_online)

    async def settings(*_: object) -> dict[str, str]:
        return {"useServerSideResetOffset": "true"}

    monkeypatch.setattr(reset, "group_members", members)
    monkeypatch.setattr(reset, "broker_settings", settings)
    asyncio.run(move_offsets(cast("Any", SimpleNamespace(ask=ask)), "billing", [AHEAD, BEHIND]))
    return sorted(requests)


def test_members_that_may_be_ahead_of_their_commit_are_told_of_every_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert asked(monkeypatch, is_online=True) == [(222, "0"), (222, "1")]


def test_of_a_group_without_members_only_what_changes_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, is_online=False) == [(15, "1")]
