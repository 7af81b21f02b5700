"""Broker: builds the object graph and owns its life.  What it does is in its parts (`parts.py`).

One event loop owns all state.  Background work is a handful of tasks; other threads only sync, write small files,
delete, and index.  When a sync fails the broker can no longer keep its promises: `failed()` returns and the process
must end.
"""

import asyncio
import logging
import os
from contextlib import suppress
from typing import Protocol

from bolide.broker.checkpointer import Checkpointer
from bolide.broker.config import BrokerConfig
from bolide.broker.door import Door
from bolide.broker.flusher import Flusher
from bolide.broker.handlers.pull import Pulling
from bolide.broker.handlers.send import Sending
from bolide.broker.handlers.transaction import Transactions
from bolide.broker.identity import Identity, identity_of
from bolide.broker.live_settings import LiveSettings
from bolide.broker.membership import Membership
from bolide.broker.new_topics import NewTopics
from bolide.broker.opening import Tables, new_store, open_all
from bolide.broker.part import P, Part
from bolide.broker.parts import PARTS
from bolide.broker.patience import Patience
from bolide.broker.safety import Safety
from bolide.broker.segment_maker import SegmentMaker
from bolide.broker.state import BrokerState
from bolide.broker.statistics import BrokerStatistics
from bolide.broker.table_files import TableFiles
from bolide.broker.topic_remover import TopicRemover
from bolide.broker.waited_for import WaitedFor
from bolide.broker.write_behind import WriteBehind
from bolide.machines.clients import ClientTable
from bolide.machines.traffic import Traffic
from bolide.model.errors import ConfigError, StoreError
from bolide.net.addresses import Addresses
from bolide.net.dispatch import Dispatcher
from bolide.net.guard import Guard, OpenHouse, Passes
from bolide.net.link import Link
from bolide.net.registry import Registry
from bolide.net.server import Server
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import Tasks
from bolide.record.message_id import UniqueIds
from bolide.store.disk import Disk
from bolide.store.disk_os import OsDisk
from bolide.store.progress import Progress
from bolide.store.store import MessageStore

log = logging.getLogger(__name__)

VIP_PORT_BELOW = 2


class _Closable(Protocol):
    def close(self) -> None: ...


class Broker:
    """A broker on its own ports and its own store directory."""

    def __init__(
        self,
        config: BrokerConfig,
        surroundings: Surroundings | None = None,
        disk: Disk | None = None,
        progress: Progress | None = None,
        guard: Guard | None = None,
    ) -> None:
        """`progress` is told how far the recovery is at the start; without it the log says so."""
        self._config = config
        self._surroundings = surroundings or Surroundings()
        self._disk = disk or OsDisk()
        self._progress = progress
        self._guard = guard or OpenHouse()
        self.registry = Registry()
        self._server = Server(self, self._surroundings.clock, hot=self)
        self._tasks = Tasks()
        self.parts: list[Part] = []
        self.host = _advertised_host(config, self._surroundings.addresses)
        self.port = 0

    @property
    def address(self) -> str:
        """Where clients reach this broker; what the name server tells them."""
        return self.state.identity.address

    def part(self, kind: type[P]) -> P:
        """The part of this kind."""
        return next(part for part in self.parts if isinstance(part, kind))

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, open the store, register: in this order, so that a used port leaves the store alone."""
        self.port = await self._server.start(self._config.bind_host, self._config.port)
        try:
            self._build()  # without a wait: clients that are in the backlog come in with the first one
        except BaseException:
            await self._server.close()
            raise
        try:
            await self._listen_vip()
            await self.state.membership.join()
        except BaseException:
            with suppress(StoreError):  # said already; what kept it from starting is what matters
                await self.stop()
            raise
        log.info("broker %s serves at %s", self._config.broker_name, self.address)

    def _build(self) -> None:
        """The store, the parts that work on it, and their background tasks."""
        config, surroundings = self._config, self._surroundings
        root = os.path.expanduser(config.root)
        identity = identity_of(config, self.host, self.port)
        store = new_store(config, identity, root, self._disk, surroundings)
        files = TableFiles(self._disk, root, surroundings.clock, surroundings.threads("bolide-tables"))
        tables = open_all(config, store, files, self._progress)
        try:
            self._build_on(identity, root, store, files, tables)
        except BaseException:
            store.abandon()
            raise

    def _build_on(
        self, identity: Identity, root: str, store: MessageStore, files: TableFiles, tables: Tables
    ) -> None:
        surroundings, clock = self._surroundings, self._surroundings.clock
        settings = LiveSettings(self._config, clock)
        traffic = Traffic()

        def now() -> BrokerConfig:
            return settings.now

        def wants_notice(group: str) -> bool:
            known = tables.groups.get(group)
            return known is None or known.notify_consumer_ids_changed_enable

        self._safety = Safety(store.marks, clock, lambda: settings.now.sync_flush_timeout_ms)
        self._flusher = Flusher(store, now, surroundings, self._safety)
        self._behind = WriteBehind(store)
        self._checkpointer = Checkpointer(store, now, surroundings, self._flusher.wake)
        self._segments = SegmentMaker(store, surroundings, self._flusher.wake)
        waited_for = WaitedFor(int(store.log.end))
        self._remover = TopicRemover(store, tables.offsets, files, surroundings, self._flusher.wake)
        self.state = BrokerState(
            identity=identity,
            settings=settings,
            surroundings=surroundings,
            disk=self._disk,
            root=root,
            store=store,
            door=Door(store, self._safety, self._behind, waited_for, self._flusher.wake),
            waited_for=waited_for,
            checkpointer=self._checkpointer,
            remover=self._remover,
            topics=tables.topics,
            groups=tables.groups,
            offsets=tables.offsets,
            files=files,
            new_topics=NewTopics(tables.topics, files, self._remover),
            clients=ClientTable(wants_notice),
            membership=Membership(identity, settings, tables.topics, clock),
            dispatcher=Dispatcher(self.registry, self._guard, Patience(now)),
            passes=Passes(self._guard),
            traffic=traffic,
            statistics=BrokerStatistics(store, traffic, clock, identity.cluster),
            started_ms=clock.now_ms(),
            unique_ids=_unique_ids(identity, surroundings),
        )
        self._add_parts()
        self._start_tasks()
        settings.on_change(self._flusher.wake)  # it may be waiting for the end of a longer interval
        self._flusher.wake()  # what was recovered is durable soon

    def _add_parts(self) -> None:
        for build in PARTS:
            part = build(self.state)
            self.parts.append(part)
            self.registry.add(part.handlers())
            self.state.figures.append(part.figures)
        self.state.figures.append(self.state.membership.figures)
        self.state.figures.append(self._server.figures)
        self.on_request = self.state.dispatcher.on_request
        self.on_sends = self.part(Sending).on_sends
        self.on_ends = self.part(Transactions).on_ends
        self.on_pull = self.part(Pulling).on_pull

    def _start_tasks(self) -> None:
        core = (
            ("sync", self._flusher.run()),
            ("answers to a slow disk", self._safety.watch_deadlines()),
            ("checkpoint", self._checkpointer.run()),
            ("next segment", self._segments.run()),
            ("deleted topics", self._remover.run()),
        )
        of_parts = (work for part in self.parts for work in part.work())
        for name, work in (*core, *self.state.files.work(), *of_parts):
            self._tasks.start(work, name)

    async def stop(self) -> None:
        """Leave the cluster, answer nothing more, write everything down.

        Whatever fails on the way is said, and the store is closed all the same.  `StoreError` when that did not work,
        or when something was left unwritten.
        """
        state = self.state
        is_told = self._flusher.failure.done()
        for leave in (
            state.membership.leave,
            self._server.close,
            state.dispatcher.close,
            self._tasks.close,
            state.membership.close,
        ):
            try:
                await leave()
            except Exception:
                log.exception("stopping: %s failed; the rest goes on", leave.__qualname__)
        owners: tuple[_Closable, ...] = (
            *(self._behind, self._flusher, self._checkpointer, self._segments, self._remover),
            *self.parts,
        )
        for owner in owners:
            try:
                owner.close()
            except Exception:
                log.exception("stopping: %s could not be closed; the rest goes on", type(owner).__name__)
        left = state.files.close()
        if (failure := state.store.durability.failure) is not None:
            state.store.abandon()
            if not is_told:
                raise StoreError(f"the last sync failed, the next start will recover the store: {failure}")
            return
        try:
            state.store.close()
        except Exception as error:
            log.exception("the store could not be closed")
            raise StoreError(
                f"the store could not be closed, the next start will recover it: {error}"
            ) from error
        if left:
            raise StoreError(
                f"the broker has stopped, but could not write {', '.join(left)}; the log says why"
            )

    async def failed(self) -> Exception:
        """Returns only when the store can no longer be trusted."""
        return await asyncio.shield(self._flusher.failure)

    async def _listen_vip(self) -> None:
        """Clients of 4.4 and older send to the port two below."""
        if self._config.port > VIP_PORT_BELOW:
            try:
                await self._server.start(self._config.bind_host, self.port - VIP_PORT_BELOW)
            except ConfigError as error:
                log.warning("no VIP channel for old clients: %s", error)

    # ---- Service: what the server calls, besides `on_request`, `on_sends` and `on_pull` --------------------

    def on_open(self, link: Link) -> None:
        pass

    def on_close(self, link: Link) -> None:
        for part in self.parts:
            try:
                part.connection_lost(link)
            except Exception:  # what others keep for the connection has to go all the same
                log.exception("%s could not let go of a closed connection", type(part).__name__)


def _advertised_host(config: BrokerConfig, addresses: Addresses) -> str:
    """The address that clients are told: the configured one, else the bound one, else the one towards others."""
    if not config.advertised_host and config.bind_host in ("", "0.0.0.0", "::"):
        return addresses.outward(v6=config.bind_host == "::")
    key = "brokerIP1" if config.advertised_host else "bindAddress"
    host = config.advertised_host or config.bind_host
    try:
        return addresses.resolve(host)
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"{key} is {host!r}, which this machine cannot resolve: {why}") from error


def _unique_ids(identity: Identity, surroundings: Surroundings) -> UniqueIds:
    """For messages that come without an id of their own."""
    chance = surroundings.random.getrandbits(32)
    return UniqueIds(identity.store_host[:-4], surroundings.pid, chance, surroundings.clock)
