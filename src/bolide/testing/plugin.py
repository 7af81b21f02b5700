"""pytest fixtures; pytest finds them by itself once bolide is installed.

    def test_orders(bolide_server):                 # a fresh server, gone after the test
        with Producer(bolide_server.nameserver, group="tests") as producer:
            producer.send(Message("orders", b"..."))

`bolide_server` is new for every test.  `bolide_module_server` is one for each file of tests and `bolide_session_server`
one for the whole run: quicker, so use topics and groups of your own.  To change settings, override the fixture
`bolide_settings`:

    @pytest.fixture(scope="session")
    def bolide_settings():
        return {"autoCreateTopicEnable": False}
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # pytest loads this file in every project that has bolide installed: it must cost nothing
    from bolide.testing.embedded import EmbeddedServer


@pytest.fixture(scope="session")
def bolide_settings() -> Mapping[str, str | int]:
    """Broker settings of all these servers, under the original's keys; override it."""
    return {}


@pytest.fixture
def bolide_server(bolide_settings: Mapping[str, str | int]) -> "Iterator[EmbeddedServer]":
    """A fresh server on free ports with no data."""
    from bolide.testing.embedded import EmbeddedServer

    with EmbeddedServer(settings=bolide_settings) as server:
        yield server


@pytest.fixture(scope="module")
def bolide_module_server(bolide_settings: Mapping[str, str | int]) -> "Iterator[EmbeddedServer]":
    """One server for all tests of a file."""
    from bolide.testing.embedded import EmbeddedServer

    with EmbeddedServer(settings=bolide_settings) as server:
        yield server


@pytest.fixture(scope="session")
def bolide_session_server(bolide_settings: Mapping[str, str | int]) -> "Iterator[EmbeddedServer]":
    """One server for all tests of the run."""
    from bolide.testing.embedded import EmbeddedServer

    with EmbeddedServer(settings=bolide_settings) as server:
        yield server
