"""Broker: builds the object graph and owns its life.  The only file of the room that knows everyone.

One event loop owns all state.  Background work is a handful of tasks; other threads only sync, write small files,
delete, and index.  When a sync fails the broker can no longer keep its promises: `failed()` returns and the process
must end.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bolide.broker.checkpointer import Checkpointer
from bolide.broker.cleaner import Cleaner
from bolide.broker.config import BrokerConfig
from bolide.broker.flusher import Flusher
from bolide.broker.handlers.group import client_gone, expire_clients
from bolide.broker.handlers.pull import PullPlans, on_pull, resume
from bolide.broker.handlers.runtime import sample_traffic
from bolide.broker.handlers.send import on_sends
from bolide.broker.hold import PullHold
from bolide.broker.indexer import Indexer
from bolide.broker.lanes import Lanes
from bolide.broker.register import BrokerIdentity, RegisterOptions, Registrar
from bolide.broker.registry import handlers_for
from bolide.broker.segment_maker import SegmentMaker
from bolide.broker.table_writer import TableWriter
from bolide.broker.topic_remover import TopicRemover
from bolide.machines.clients import ClientTable
from bolide.machines.locks import QueueLocks
from bolide.machines.traffic import SAMPLE_MS, Traffic
from bolide.model.clock import Clock
from bolide.model.data_version import DataVersion
from bolide.model.errors import BolideError, ConfigError, StoreUnavailable
from bolide.model.message import NAME_END, PAIR_END, Property
from bolide.model.response_code import ResponseCode
from bolide.model.topic import TopicConfig
from bolide.net.caller import Caller, parse_addresses
from bolide.net.clock import SystemClock
from bolide.net.dispatch import Dispatcher
from bolide.net.link import Link, encode_host
from bolide.net.server import Server
from bolide.net.tasks import Tasks
from bolide.net.ticks import ticks
from bolide.record.message_id import UniqueIds
from bolide.rules.built_in_topics import built_in_topics
from bolide.rules.topic_creation import topic_for_send
from bolide.store.append import QueueTail, TopicLane
from bolide.store.disk import Disk
from bolide.store.disk_os import OsDisk
from bolide.store.index_file import IndexSizes
from bolide.store.progress import Progress
from bolide.store.store import MessageStore, StoreOptions
from bolide.store.tables import GroupTable, OffsetTable, TopicTable
from bolide.wire.command import LANGUAGE, VERSION, Command, encode_frame
from bolide.wire.frame import FrameReader, Intake
from bolide.wire.headers.send import SendRequest
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun

log = logging.getLogger(__name__)

WRITE_BEHIND_S = 0.01
"""How long queue entries stay in memory only; a crash in between costs nothing but their rebuilding."""

WRITE_BEHIND_RETRY_S = 1.0
SWEEP_HOLD_S = 0.5
SWEEP_CLIENTS_S = 10.0
PERSIST_TABLES_MS = 200
VIP_PORT_BELOW = 2


class Broker:
    """A broker on its own ports and its own store directory."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock | None = None,
        disk: Disk | None = None,
        progress: Progress | None = None,
    ) -> None:
        """`progress` is told how far the recovery is at the start; without it the log says so."""
        self.config = config
        self._progress = progress
        self.clock = clock or SystemClock()
        self._disk = disk or OsDisk()
        self._root = os.path.expanduser(config.root)
        self.memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.started_ms = self.clock.now_ms()
        self.config_version = DataVersion(timestamp_ms=self.started_ms)
        folder = os.path.join(self._root, "config")
        self.topics = TopicTable(self._disk, os.path.join(folder, "topics.json"), self.clock)
        self.groups = GroupTable(self._disk, os.path.join(folder, "subscriptionGroup.json"), self.clock)
        self.offsets = OffsetTable(self._disk, os.path.join(folder, "consumerOffset.json"), self.clock)
        self.clients: ClientTable[Link] = ClientTable(self._wants_notice)
        self.locks = QueueLocks()
        self.traffic = Traffic()
        self.plans = PullPlans(self)
        self.hold = PullHold(lambda held: resume(self, held))
        self.host = _advertised_host(config)
        self._behind: set[QueueTail] = set()
        self._undurable: set[QueueTail] = set()
        self._behind_timer: asyncio.TimerHandle | None = None
        self._chosen: dict[str, TopicLane] = {}
        self._tasks = Tasks()
        self._registrar: Registrar | None = None
        self._new_topics: dict[str, asyncio.Future[None]] = {}
        self._files_thread = ThreadPoolExecutor(1, thread_name_prefix="bolide-tables")
        self.port = 0

    @property
    def address(self) -> str:
        """Where clients reach this broker; what the name server tells them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def recent_bytes(self) -> int:
        """So much of the log's end counts as being in memory."""
        return self.memory_bytes * self.config.memory_ratio // 100

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, open the store, register: in this order, so that a used port leaves the store alone."""
        self._dispatcher = Dispatcher(handlers_for(self))
        self._server = Server(self, self.clock, hot=self)
        self.port = await self._server.start(self.config.bind_host, self.config.port)
        try:
            self._open_store()
        except BaseException:
            await self._server.close()
            raise
        self._build()  # before the first wait: clients that are in the backlog come in with it
        try:
            await self._listen_vip()
            await self._start_registration()
        except BaseException:
            await self.stop()
            raise
        log.info("broker %s serves at %s", self.config.broker_name, self.address)

    def _build(self) -> None:
        """Everything that works on the open store, and its background tasks."""
        self.topics.on_change = self.topic_changed
        self.indexer = Indexer(self.store, self.clock)
        self.flusher = Flusher(self.store, lambda: self.config, self.clock, self._on_durable)
        self.checkpointer = Checkpointer(self.store, lambda: self.config, self.clock, self.flusher.wake)
        self.segment_maker = SegmentMaker(self.store, self.clock, self.flusher.wake)
        self.topic_remover = TopicRemover(self.store, self.flusher.wake)
        self.cleaner = Cleaner(
            self.store, self._disk, self._root, lambda: self.config, self.clock, self.checkpointer.checkpoint
        )
        self._topics_writer = TableWriter(self.topics, PERSIST_TABLES_MS, self._files_thread)
        self._groups_writer = TableWriter(self.groups, PERSIST_TABLES_MS, self._files_thread)
        self._offsets_writer = TableWriter(self.offsets, self.config.persist_offsets_ms, self._files_thread)
        self._caller = Caller(self.clock, on_close=self._on_caller_close)
        self._start_tasks()
        self.flusher.wake()  # what was recovered is durable soon

    async def stop(self) -> None:
        """Leave the cluster, answer nothing more, write everything down."""
        if self._registrar is not None:
            await self._registrar.stop()
        await self._server.close()
        await self._dispatcher.close()
        await self._tasks.close()
        await self._caller.close()
        if self._behind_timer is not None:
            self._behind_timer.cancel()
        self.flusher.close()
        self.checkpointer.close()
        self.segment_maker.close()
        self.topic_remover.close()
        self.indexer.close()
        self.cleaner.close()
        self._files_thread.shutdown(wait=True)
        self._write_down()

    def _write_down(self) -> None:
        """Tables and store, at a stop.  What cannot be written is said, and the next start recovers from it."""
        for table in (self.topics, self.groups, self.offsets):
            try:
                table.persist()
            except OSError as error:
                log.error("%s is left as it was written last: %s", table.file.path, error.strerror or error)
        if self.store.durability.failure is None:
            try:
                self.store.close()
            except (BolideError, OSError) as error:
                log.error("the store could not be closed, the next start will recover it: %s", error)

    async def failed(self) -> Exception:
        """Returns only when the store can no longer be trusted."""
        return await asyncio.shield(self.flusher.failure)

    def _open_store(self) -> None:
        config = self.config
        self.store_host = encode_host(self.host, self.port)
        self.host_hex = self.store_host.hex().upper().encode()
        self.properties_suffix = _pairs(
            (Property.MSG_REGION, config.region),
            (Property.TRACE_ON, "true" if config.trace_on else "false"),
            (Property.CLUSTER, config.cluster_name),
        )
        self.answer_tail = _answer_tail(config)
        self.unique_ids = UniqueIds(self.store_host[:-4], os.getpid(), secrets.randbits(32), self.clock)
        self.store = MessageStore(
            self._disk,
            StoreOptions(
                root=self._root,
                store_host=self.store_host,
                properties_suffix=self.properties_suffix,
                body_bytes_max=config.body_bytes_max,
                segment_bytes=config.segment_bytes,
                queue_file_bytes=config.queue_file_bytes,
                sync_flush=config.sync_flush,
                sealed=config.seal_records,
                check=config.check_on_read,
                index=IndexSizes(config.index_slots, config.index_entries) if config.index_enabled else None,
            ),
            self.clock,
        )
        found = self.store.open(self._progress)
        for table in (self.topics, self.groups, self.offsets):
            table.load()
        if not found.clean and (moved := self.offsets.bring_back(self.store.queues.end_of)):
            log.warning("messages were lost that groups had consumed: %d offsets go back to the end", moved)
        self.topics.add_missing(
            built_in_topics(config.cluster_name, config.broker_name, auto_create=config.auto_create_topic)
        )
        self.groups.add_built_in()
        self.lanes = Lanes(self.topics, self.store, self._may_run)

    async def _listen_vip(self) -> None:
        """Clients of 4.4 and older send to the port two below."""
        if self.config.port > VIP_PORT_BELOW:
            try:
                await self._server.start(self.config.bind_host, self.port - VIP_PORT_BELOW)
            except ConfigError as error:
                log.warning("no VIP channel for old clients: %s", error)

    async def _start_registration(self) -> None:
        config = self.config
        if not config.nameservers:
            log.warning("no name server is configured (namesrvAddr); clients cannot find this broker")
            return
        self._registrar = Registrar(
            self._caller,
            parse_addresses(config.nameservers),
            BrokerIdentity(config.cluster_name, config.broker_name, self.address, config.broker_id),
            lambda: (self.topics.version, list(self.topics)),
            permission=lambda: self.config.permission,
            options=RegisterOptions(
                period_ms=config.register_period_ms,
                force=config.force_register,
                compressed=config.compress_register,
            ),
        )
        await self._registrar.start()

    def _start_tasks(self) -> None:
        for name, work in (
            ("sync", self.flusher.run()),
            ("answers to a slow disk", self.flusher.watch_deadlines()),
            ("key index", self.indexer.run()),
            ("checkpoint", self.checkpointer.run()),
            ("next segment", self.segment_maker.run()),
            ("deleted topics", self.topic_remover.run()),
            *((f"retention {number}", work) for number, work in enumerate(self.cleaner.work(), 1)),
            ("held pulls", self._every(SWEEP_HOLD_S, lambda: self.hold.sweep(self.clock.monotonic_ms()))),
            ("silent clients", self._every(SWEEP_CLIENTS_S, lambda: expire_clients(self))),
            ("traffic", self._every(SAMPLE_MS / 1000, lambda: sample_traffic(self))),
            ("topics.json", self._topics_writer.run()),
            ("subscriptionGroup.json", self._groups_writer.run()),
            ("consumerOffset.json", self._offsets_writer.run()),
        ):
            self._tasks.start(work, name)

    async def _every(self, seconds: float, work: Callable[[], object]) -> None:
        async for _ in ticks(seconds):
            try:
                work()
            except (BolideError, OSError) as error:
                log.error("background work failed and is tried again: %s", error)

    # ---- Service: what the server calls --------------------------------------------------------------------

    def on_open(self, link: Link) -> None:
        pass

    def on_request(self, link: Link, request: Command) -> None:
        self._dispatcher.on_request(link, request)

    def on_sends(self, link: Link, run: SendRun) -> None:
        on_sends(self, link, run)

    def on_pull(self, link: Link, pull: PullFrame) -> None:
        on_pull(self, link, pull)

    def on_close(self, link: Link) -> None:
        client_gone(self, link)

    # ---- what handlers call --------------------------------------------------------------------------------

    def stored(self) -> None:
        """Messages were appended: wake who waits for them, and write their queue entries soon."""
        touched = self.store.take_touched()
        if self.config.sync_flush:
            self._undurable.update(touched)
            self.flusher.wake()
        else:
            for tail in touched:
                self.hold.arrived(tail)
        self._behind.update(touched)
        if self._behind_timer is None:
            loop = asyncio.get_running_loop()
            self._behind_timer = loop.call_later(WRITE_BEHIND_S, self._write_behind)

    def acknowledge(self, link: Link, answers: bytes) -> None:
        """Send the answers of a run, at once or when its records are durable."""
        if not answers:
            return
        if not self.config.sync_flush:
            link.write(answers)
            return
        end = self.store.log.end
        self.flusher.wait(end, lambda durable: link.write(answers if durable else _timed_out(answers)))

    def topic_changed(self) -> None:
        """A topic was created, changed or deleted, or the broker's permission changed."""
        self.lanes.forget()
        self._chosen.clear()
        if self._registrar is not None:
            self._registrar.topic_changed()

    async def registered(self) -> None:
        """Wait until topics.json and the name servers that work know our topics as they are now."""
        await self._topics_writer.written()
        if self._registrar is not None:
            await self._registrar.settled()

    def create_topic(self, header: SendRequest) -> TopicConfig:
        """The topic of a send, made on demand where that is allowed.

        A new topic has no lane until topics.json holds it: its messages are not acknowledged before, because a
        broker killed in between would have messages of a topic that nobody knows.
        """
        known = self.topics.get(header.topic)
        if known is not None:
            return known
        topic = topic_for_send(
            header.topic,
            self.topics.get(header.default_topic),
            header.default_topic_queues,
            auto_create=self.config.auto_create_topic,
        )
        self.topics.put(topic)
        future = self._new_topics[topic.name] = self._topics_writer.written()
        future.add_done_callback(lambda _: self._new_topics.pop(topic.name, None))
        return topic

    def unwritten(self, topic: str) -> "asyncio.Future[None] | None":
        """What to wait for before a message of this topic may be acknowledged; None for a topic that is on disk."""
        return self._new_topics.get(topic)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Settings changed at run time."""
        self.config = config
        self.config_version = self.config_version.next(self.clock.now_ms())
        self.lanes.forget()

    def choose_queue(self, topic: TopicConfig) -> int:
        """A write queue for a message that left the choice to us."""
        lane = self._chosen.get(topic.name)
        if lane is None:
            lane = self._chosen[topic.name] = self.lanes.of_topic(topic)
        return lane.choose()

    def _on_caller_close(self, address: str) -> None:
        if self._registrar is not None:
            self._registrar.connection_lost(address)

    # ---- background ----------------------------------------------------------------------------------------

    def _on_durable(self) -> None:
        """More of the log may be read: wake who waits for it, and remember queues that have more to come."""
        readable = self.store.reader.readable_end
        tails, self._undurable = self._undurable, set()
        for tail in tails:
            self.hold.arrived(tail, readable)
            if not self.store.reader.is_readable(tail, readable):
                self._undurable.add(tail)

    def _write_behind(self) -> None:
        self._behind_timer = None
        tails, self._behind = self._behind, set()
        try:
            self.store.write_behind(list(tails))
        except StoreUnavailable as error:
            log.error("%s; nothing more is taken until it works again", error)
            self._behind |= tails
            loop = asyncio.get_running_loop()
            self._behind_timer = loop.call_later(WRITE_BEHIND_RETRY_S, self._write_behind)

    def _may_run(self, topic: TopicConfig) -> bool:
        """Whether plain messages to this topic need no decision at the moment."""
        return topic.name not in self._new_topics and (self.config.writable or not topic.order)

    def _wants_notice(self, group: str) -> bool:
        config = self.groups.get(group)
        return config is None or config.notify_consumer_ids_changed_enable


def _advertised_host(config: BrokerConfig) -> str:
    """The address that clients are told: the configured one, else the bound one, else the one towards others."""
    if config.advertised_host:
        return _resolve(config.advertised_host)
    if config.bind_host not in ("", "0.0.0.0", "::"):
        return _resolve(config.bind_host)
    # Connecting a datagram socket sends nothing; it only asks for the route's own address.
    family, elsewhere, loopback = (
        (socket.AF_INET6, "2001:db8::1", "::1")
        if config.bind_host == "::"
        else (socket.AF_INET, "192.0.2.1", "127.0.0.1")
    )
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return loopback


def _resolve(host: str) -> str:
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise ConfigError(f"the address {host!r} cannot be resolved: {error}; set brokerIP1") from error


def _pairs(*pairs: tuple[str, str]) -> bytes:
    return "".join(f"{name}{NAME_END}{value}{PAIR_END}" for name, value in pairs).encode()


def _answer_tail(config: BrokerConfig) -> bytes:
    """What all answers to plain sends share, up to the opaque."""
    trace = "true" if config.trace_on else "false"
    return (
        f',"MSG_REGION":"{config.region}","TRACE_ON":"{trace}"}},"flag":1,"language":"{LANGUAGE}"'
        f',"version":{VERSION},"opaque":'
    ).encode()


def _timed_out(answers: bytes) -> bytes:
    """The same answers, saying that the disk took too long; rare enough to decode them again."""
    frames: list[bytes] = []
    for answer in FrameReader(Intake(len(answers))).feed(answers):
        assert isinstance(answer, Command)
        answer.code = ResponseCode.FLUSH_DISK_TIMEOUT
        answer.remark = "the message is stored, but syncing it to disk took too long"
        frames.append(encode_frame(answer))
    return b"".join(frames)
