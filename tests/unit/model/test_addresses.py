"""Addresses: what is one, and what is none."""

import pytest

from bolide.model.addresses import parse_address, parse_addresses
from bolide.model.errors import ConfigError


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "host:",
        ":1",
        "host:x",
        "host:0",
        "host:65536",
        "host:-1",
        "host:²",
        "host:+1",
        "[]:1",
        "]:1",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_address(text)


@pytest.mark.parametrize("scheme", ["http", "tcp", "rocketmq"])
def test_an_address_with_a_scheme_is_told_to_leave_it_out(scheme: str) -> None:
    """`http://localhost:9876` would be taken for the host `http://localhost`, and nobody would find it."""
    with pytest.raises(ConfigError, match=f"leave out {scheme}://, as in host:port"):
        parse_addresses(f"a:1;{scheme}://host:9876")


def test_addresses_are_read_in_all_their_forms() -> None:
    assert parse_address(" localhost:9876 ") == ("localhost", 9876)
    assert parse_address("[::1]:9876") == ("::1", 9876)
    assert parse_addresses("a:1; b:2,c:3;") == ["a:1", "b:2", "c:3"]
    with pytest.raises(ConfigError, match="no name server"):
        parse_addresses(" ; ")


def test_a_port_of_any_length_is_refused_in_few_words() -> None:
    """Servers tell addresses too."""
    with pytest.raises(ConfigError, match="host:port") as caught:
        parse_address("host:" + "9" * 5000)
    assert len(str(caught.value)) < 400
