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


@pytest.mark.parametrize(
    ("variables", "words", "said"),
    [
        ({"BOLIDE_NAMESERVER": "zzz"}, ["topic", "list"], "BOLIDE_NAMESERVER: 'zzz' is not an address"),
        ({"NAMESRV_ADDR": "h:x"}, ["topic", "list"], "NAMESRV_ADDR: 'h:x' is not an address"),
        ({"NAMESRV_ADDR": "h:x"}, ["broker"], "NAMESRV_ADDR: namesrvAddr: 'h:x' is not an address"),
        (
            {"NAMESRV_ADDR": "h:x"},
            ["topic", "list", "-n", "h:99999"],
            "--nameserver: 'h:99999' has a port that none",
        ),
        (
            {},
            ["broker", "--set", "bindAddress=10.0.0.7:1"],
            "--set: bindAddress is an address without a port",
        ),
        ({}, ["broker", "--set", "brokerIP1=10.0.0.700"], "--set: brokerIP1 is an address without a port"),
        ({}, ["nameserver", "--host", "a b"], "bindAddress is an address without a port"),
    ],
)
def test_an_address_that_is_none_is_said_with_who_gave_it(
    variables: dict[str, str],
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("BOLIDE_NAMESERVER", "NAMESRV_ADDR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_a_name_that_cannot_be_resolved_is_said_with_the_setting_that_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in ("bindAddress", "brokerIP1"):
        given = (f"{key}=nobody.invalid", "listenPort=0", f"storePathRootDir={tmp_path}")
        assert main(["broker", *(word for one in given for word in ("--set", one))]) == 2
        assert f"{key} is 'nobody.invalid', which this machine cannot resolve" in capsys.readouterr().err
