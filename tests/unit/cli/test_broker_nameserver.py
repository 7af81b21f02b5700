"""With which name server `bolide broker` registers: options, then the file, then the environment."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bolide.broker.config import BrokerConfig
from bolide.cli.main import main
from bolide.cli.outcome import CannotStart

Choose = Callable[..., str]


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Choose:
    """The name server that a command line ends up with; the broker itself is not started."""
    chosen: list[BrokerConfig] = []

    def broker(config: BrokerConfig, **_: object) -> None:
        chosen.append(config)
        raise CannotStart("seen")

    monkeypatch.setattr("bolide.broker.app.Broker", broker)
    monkeypatch.delenv("BOLIDE_NAMESERVER", raising=False)
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    def choose(*words: str) -> str:
        assert main(["broker", "--set", f"storePathRootDir={tmp_path / 'store'}", *words]) == 5
        return chosen.pop().nameservers

    return choose


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "broker.conf"
    path.write_text("namesrvAddr=file:9876\n")
    return str(path)


def test_without_any_there_is_none(choose: Choose) -> None:
    assert choose() == ""


def test_the_environment_is_read_ours_before_the_originals(
    choose: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "theirs:9876")
    assert choose() == "theirs:9876"
    monkeypatch.setenv("BOLIDE_NAMESERVER", "ours:9876")
    assert choose() == "ours:9876"


def test_the_file_wins_over_the_environment_and_options_over_the_file(
    choose: Choose, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "theirs:9876")
    assert choose("-c", file) == "file:9876"
    assert choose("-c", file, "-n", "option:9876;other:9876") == "option:9876;other:9876"
    assert choose("-c", file, "--set", "namesrvAddr=set:9876") == "set:9876"
