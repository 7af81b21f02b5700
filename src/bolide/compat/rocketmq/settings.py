"""Settings: what all clients of rocketmq-client-python are told between their making and their start."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import bolide
from bolide.compat.rocketmq.exceptions import NotSupported, RocketMQException
from bolide.compat.rocketmq.messages import Text, text_of


class _Startable(Protocol):
    def start(self) -> None: ...
    def close(self) -> None: ...


C = TypeVar("C", bound=_Startable)


class SettableClient(ABC, Generic[C]):
    """Remembers settings; at `start` they become a client of bolide's own."""

    start_failed: type[RocketMQException] = RocketMQException

    def __init__(self, group_id: Text) -> None:
        self._group = text_of("group_id", group_id)
        self._nameserver = ""
        self._options: dict[str, Any] = {}
        self._core: C | None = None

    def set_group(self, group_id: Text) -> None:
        """The group, instead of the one that it was made with."""
        self._check_not_running("the group")
        self._group = text_of("group_id", group_id)

    def set_name_server_address(self, addr: Text) -> None:
        """One or several addresses: `host:port;host:port`."""
        self._check_not_running("the address")
        self._nameserver = text_of("the address", addr)

    set_namesrv_addr = set_name_server_address

    def set_name_server_domain(self, domain: Text) -> None:
        """Not supported: name servers are given by their addresses."""
        raise NotSupported(
            f"these clients ask no web server for addresses: give what {domain!r:.64} answers to"
            " set_name_server_address('host:port;host:port')"
        )

    set_namesrv_domain = set_name_server_domain

    def set_session_credentials(self, access_key: Text, access_secret: Text, channel: Text = "") -> None:
        """Who the client is, for clusters that demand it.  The channel means nothing to brokers."""
        text_of("channel", channel)
        self._set(
            "credentials",
            bolide.Credentials(text_of("access_key", access_key), text_of("secret", access_secret)),
        )

    def set_instance_name(self, name: Text) -> None:
        """Tells clients of one machine apart."""
        self._set("instance_name", text_of("the instance name", name))

    def start(self) -> None:
        """Begin to work with the settings that it has now."""
        if self._core is not None:
            raise self.start_failed("it runs already")
        if not self._nameserver:
            raise self.start_failed("no name server: call set_name_server_address('host:port') first")
        try:
            core = self._made()
            core.start()
        except bolide.BolideError as error:
            raise self.start_failed(str(error)) from error
        self._core = core

    def shutdown(self) -> None:
        """End in order.  Again, or before the start, it does nothing."""
        core, self._core = self._core, None
        if core is not None:
            core.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    @abstractmethod
    def _made(self) -> C:
        """A client of bolide's with these settings."""

    def _set(self, option: str, value: object) -> None:
        """An argument of bolide's client."""
        self._check_not_running(option)
        self._options[option] = value

    def _check_not_running(self, what: str) -> None:
        if self._core is not None:
            raise self.start_failed(f"it runs already: set {what} before start()")

    @property
    def _running(self) -> C:
        if self._core is None:
            raise RocketMQException("it does not run: call start() first")
        return self._core
