"""Settings from options, properties and TOML."""

from pathlib import Path

import pytest

from bolide.broker.config import BrokerConfig
from bolide.cli.main import main
from bolide.cli.settings import parse_assignments, parse_properties_file, read_settings
from bolide.model.errors import ConfigError
from bolide.model.limits import SETTINGS_FILE_BYTES_MAX


def test_set_options_are_pairs_and_the_last_of_a_key_wins() -> None:
    given = parse_assignments(["a=1", "b = x=y ", "a=2"])
    assert given == {"a": "2", "b": "x=y"}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_a_set_option_that_is_no_pair_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="key=value"):
        parse_assignments([word])


def test_properties_are_read_as_java_reads_them() -> None:
    text = "# comment\n! another\n\n  a = 1  \nb:2\nc 3\nd=x\\\n   y\n"
    text += "e=\\u0041\\=\\\\\npath=C\\:\\\\x\nempty=\nlast=z\\"
    assert parse_properties_file(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "xy",
        "e": "A=\\",
        "path": "C:\\x",
        "empty": "",
        "last": "z",
    }


def test_toml_has_the_same_keys_at_the_top_or_in_the_table_of_the_server(tmp_path: Path) -> None:
    path = tmp_path / "bolide.toml"
    path.write_text(
        'brokerName = "b"\n[broker]\nlistenPort = 1234\nautoCreateTopicEnable = false\n'
        'namesrvAddr = ["x:1", "y:2"]\n[nameserver]\nlistenPort = 99\n'
    )
    given = read_settings(path, "broker")
    config = BrokerConfig.from_settings(given)
    assert (config.broker_name, config.port, config.auto_create_topic) == ("b", 1234, False)
    assert config.nameservers == "x:1;y:2"
    assert read_settings(path, "nameserver") == {"brokerName": "b", "listenPort": "99"}


def test_a_file_of_the_original_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(
        "brokerClusterName = DefaultCluster\nbrokerName = broker-a\nbrokerId = 0\ndeleteWhen = 04\n"
        "fileReservedTime = 48\nbrokerRole = ASYNC_MASTER\nflushDiskType = ASYNC_FLUSH\n"
    )
    config = BrokerConfig.from_settings(read_settings(path, "broker"))
    assert (config.cluster_name, config.broker_name) == ("DefaultCluster", "broker-a")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.toml", b"a = ", "not TOML"),
        ("a.toml", b"[other]\na=1", r"\[other\]"),
        ("a.toml", b"a = {b = 1}\n", r"\[a\]"),
        ("a.toml", b"a = [1, 2]\n", "a must be"),
        ("a.conf", b"\xff\xfe", "UTF-8"),
        ("a.conf", b"#" * (SETTINGS_FILE_BYTES_MAX + 1), "larger"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=words):
        read_settings(path, "broker")


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_settings(tmp_path / "none.conf", "broker")


def test_a_number_of_any_length_in_toml_is_refused_by_its_key(tmp_path: Path) -> None:
    """Those in other bases are read whatever their length, and could not be written as decimal ones."""
    path = tmp_path / "broker.toml"
    path.write_text(f"listenPort = 0x{'f' * 5000}")
    with pytest.raises(ConfigError, match="listenPort must be text, a number of 64 bits"):
        read_settings(path, "broker")


def test_every_problem_of_a_name_servers_file_is_said_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "namesrv.conf"
    file.write_text("listenPort=9876\ntlsEnable=true\nclusterTest=true\nscanNotActiveBrokerInterval=0\n")
    assert main(["nameserver", "-c", str(file), "--host", "a:1", "--set", "orderMessageEnable=perhaps"]) == 2
    said = [
        line.removeprefix("error: ").replace(str(file), "") for line in capsys.readouterr().err.splitlines()
    ]
    assert [line.split(" ")[0] + line.split(" ")[1] for line in said] == [
        "--host:bindAddress",
        "--set:orderMessageEnable",
        ":2:tlsEnable=true:",
        ":3:clusterTest=true:",
        ":4:scanNotActiveBrokerInterval",
    ]
    assert "there is no encryption here yet" in said[2]


def test_a_file_that_is_not_there_is_said_with_what_may_be_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broker.conf").touch()
    assert main(["broker", "-c", str(tmp_path / "brokr.conf")]) == 2
    assert f"there is 'broker.conf' in {tmp_path}" in capsys.readouterr().err
    assert main(["broker", "-c", str(tmp_path / "conf" / "broker.conf")]) == 2
    assert f"there is no directory {tmp_path}/conf" in capsys.readouterr().err
