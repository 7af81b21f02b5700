"""Membership: the broker in its cluster.  Name servers know its topics, and tell it which of them are ordered."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from bolide.broker.identity import Identity
from bolide.broker.live_settings import LiveSettings
from bolide.broker.register import BrokerIdentity, RegisterOptions, Registrar, RegistrationNews
from bolide.broker.rivals import Rivals, check_no_rival
from bolide.model.addresses import parse_addresses
from bolide.model.clock import Clock
from bolide.model.errors import ConfigError, RequestError
from bolide.net.caller import Caller
from bolide.net.link import Link
from bolide.store.tables import TopicTable
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

log = logging.getLogger(__name__)


class Membership:
    def __init__(self, identity: Identity, settings: LiveSettings, topics: TopicTable, clock: Clock) -> None:
        self._identity = identity
        self._settings = settings
        self._topics = topics
        self._caller = Caller(clock, on_request=self._told, on_close=self._connection_lost)
        self._clock = clock
        self._registrar: Registrar | None = None
        self._rivals: Rivals | None = None

    async def join(self) -> None:
        """Returns when every name server was told, or after a moment if one does not answer.

        `ConfigError` if another broker of this name is running.
        """
        config, identity, topics = self._settings.now, self._identity, self._topics
        if not config.nameservers:
            log.warning("no name server is configured (namesrvAddr); clients cannot find this broker")
            return
        addresses = parse_addresses(config.nameservers)
        me = BrokerIdentity(identity.cluster, identity.name, identity.address, identity.broker_id)
        await check_no_rival(self._caller, addresses, me)
        self._rivals = Rivals(me, self._clock)
        self._registrar = Registrar(
            self._caller,
            addresses,
            me,
            lambda: (topics.version, list(topics)),
            permission=lambda: self._settings.now.permission,
            options=RegisterOptions(
                period_ms=config.register_period_ms,
                force=config.force_register,
                compressed=config.compress_register,
            ),
            on_news=self._take_news,
            rivals=self._rivals,
        )
        topics.on_change(self._registrar.topic_changed)
        await self._registrar.start()

    async def settled(self) -> None:
        """Wait until the name servers that work know our topics as they are now."""
        if self._registrar is not None:
            await self._registrar.settled()

    async def registered_with(self, nameserver: str, timeout_ms: int) -> None:
        """Wait until this name server knows us; `ConfigError` says why it does not."""
        assert self._registrar is not None
        if not await self._registrar.registered(nameserver, timeout_ms):
            why = self._registrar.problems().get(nameserver, "it does not answer")
            raise ConfigError(f"the broker could not register with the name server {nameserver}: {why}")

    def figures(self) -> Mapping[str, str]:
        """For operators."""
        return {} if self._rivals is None else self._rivals.figures()

    async def leave(self) -> None:
        if self._registrar is not None:
            await self._registrar.stop()

    async def close(self) -> None:
        await self._caller.close()

    def _connection_lost(self, address: str) -> None:
        if self._registrar is not None:
            self._registrar.connection_lost(address)

    def _told(self, link: Link, request: Command) -> None:
        if self._registrar is not None and request.code == RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE:
            self._registrar.place_taken(link)

    def _take_news(self, news: RegistrationNews) -> None:
        """A topic that a name server has an order configuration for is an ordered one.

        As in the original, one that has none any more stays as it is: the table here may have been told so by hand.
        """
        for name in news.order_topics:
            topic = self._topics.get(name)
            if topic is not None and not topic.order:
                try:
                    self._topics.put(replace(topic, order=True))
                except RequestError as error:  # a table of the original may hold what could not be made here
                    log.warning("the topic %s cannot be made an ordered one: %s", name, error)
                else:
                    log.info("the topic %s is ordered now: a name server has a configuration for that", name)
