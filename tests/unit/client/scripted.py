"""A cluster that does what a test tells it: one name server and brokers that keep messages in lists.

It speaks the real protocol on real sockets, so that the clients under test are whole; what it stores and how it fails
is in plain attributes.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson

from bolide.model.offsets import MessageQueue
from bolide.net.clock import SystemClock
from bolide.net.dispatch import Dispatcher
from bolide.net.link import Link, encode_host
from bolide.net.registry import Handler, Registry
from bolide.net.server import Server
from bolide.record.codec import encode_record, split_batch
from bolide.record.message_id import format_offset_id
from bolide.wire.bodies.lock import LockRequest, encode_locked
from bolide.wire.bodies.topic import QueueBounds, topic_stats_pieces
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.offset import QueryGroupOffset, QueueRequest, UpdateGroupOffset
from bolide.wire.headers.pull import PullAnswer, PullFlag, PullRequest
from bolide.wire.headers.retry import SendBack
from bolide.wire.headers.send import SendAnswer, SendRequest
from bolide.wire.headers.transaction import EndTransaction

HOST = "127.0.0.1"
WAIT_S = 10
QUEUES = 4
"""Of a topic on each broker, unless a test wants others."""


class Node:
    """A listening server; `seen` lists the codes it was asked, `forgotten` the connections that it swallows all of."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.seen: list[int] = []
        self.silences: set[int] = set()  # codes that are not answered
        self.address = ""
        self.links: set[Link] = set()
        self.forgotten: set[Link] = set()
        self._server = Server(self, self.clock)
        self._dispatcher = Dispatcher(Registry())

    def handlers(self) -> dict[RequestCode, Handler]:
        raise NotImplementedError

    async def start(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._dispatcher = Dispatcher(Registry(self.handlers()))
        self._server = Server(self, self.clock)
        port = await self._server.start(HOST, port)
        if tls is not None:  # on another port: servers of ours do not speak it yet
            listener = await asyncio.get_running_loop().create_server(self._server._accept, HOST, 0, ssl=tls)
            self._server._listeners.append(listener)
            port = listener.sockets[0].getsockname()[1]
        self.address = f"{HOST}:{port}"

    async def stop(self) -> None:
        await self._dispatcher.close()
        await self._server.close()

    def forget_connections(self) -> None:
        """As if the machine had lost power: what comes on them is read and never answered."""
        self.forgotten |= self.links

    def on_open(self, link: Link) -> None:
        self.links.add(link)

    def on_close(self, link: Link) -> None:
        self.links.discard(link)

    def on_request(self, link: Link, request: Command) -> None:
        if link in self.forgotten:
            return
        self.seen.append(request.code)
        if request.code in self.silences:
            return
        self._dispatcher.on_request(link, request)


class Gate:
    """Lets everything through until it is shut; `waiting` counts who stands before it."""

    def __init__(self) -> None:
        self.waiting = 0
        self._is_open = asyncio.Event()
        self._is_open.set()

    def shut(self) -> None:
        self._is_open.clear()

    def open(self) -> None:
        self._is_open.set()

    async def passed(self) -> None:
        self.waiting += 1
        await self._is_open.wait()
        self.waiting -= 1


class ScriptedBroker(Node):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.queues: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
        self.sends: list[SendRequest] = []
        self.bodies: list[bytes] = []
        self.answers: list[int] = []  # codes for the next sends, instead of storing
        self.sent_back: list[SendBack] = []
        self.refusals = 0  # of messages sent back
        self.refusal: tuple[int, str] = (ResponseCode.SYSTEM_ERROR, "")  # code and remark of those
        self.ends: list[tuple[EndTransaction, str | None]] = []  # of transactions, each with its remark
        self.silent = False  # swallows sends
        self.pull_messages_max = 10**9  # the original's brokers give 32, whatever is asked for
        self.deaf_for: set[int] = set()  # queues whose pulls wait until they are taken out
        self.pulls: list[PullRequest] = []
        self.ids = {"0": self}  # who has this broker's name, by broker id
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.stores = Gate()  # through which requests that store an offset go
        self.heartbeats: list[dict[str, object]] = []
        self.members: list[str] = []
        self.first: defaultdict[tuple[str, int], int] = defaultdict(int)  # first offset still there
        self.gives_young_queues_whole = False  # as brokers of Apache, to a group that has no offset in them
        self.before_ends: Callable[[str, int], None] | None = None  # before it says where a queue ends
        self.locks: dict[MessageQueue, str] = {}
        self.lock_requests = 0
        self._arrived = asyncio.Event()

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.SEND_MESSAGE_V2: self._send,
            RequestCode.SEND_BATCH_MESSAGE: self._send,
            RequestCode.SEND_REPLY_MESSAGE_V2: self._send,
            RequestCode.END_TRANSACTION: self._end,
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: lambda link, request: request.answer(
                body=orjson.dumps({"consumerIdList": self.members})
            ),
            RequestCode.QUERY_CONSUMER_OFFSET: self._query_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update_offset,
            RequestCode.GET_MAX_OFFSET: self._max_offset,
            RequestCode.GET_MIN_OFFSET: lambda link, request: request.answer(fields={"offset": "0"}),
            RequestCode.GET_TOPIC_STATS_INFO: self._stats,
            RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back,
            RequestCode.LOCK_BATCH_MQ: self._lock,
            RequestCode.UNLOCK_BATCH_MQ: self._unlock,
        }

    async def ask(self, code: int, fields: dict[str, str], body: bytes = b"") -> Command:
        """A client's answer to what brokers pass on; the last one that has connected is asked."""
        (link,) = list(self.links)[-1:]
        return await link.call(Command(code, fields, body), WAIT_S * 1000)

    def notify_members(self, group: str) -> None:
        for link in self.links:
            link.notify(Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": group}))

    def _send(self, link: Link, request: Command) -> Command | None:
        header = SendRequest.decode(request.fields)
        self.sends.append(header)
        self.bodies.append(request.body)
        if self.silent:
            return None
        code = self.answers.pop(0) if self.answers else ResponseCode.SUCCESS
        if code not in (ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT):
            return request.answer(code, remark="as the test wants it")
        items = split_batch(request.body) if header.batch else [(0, request.body, header.properties.encode())]
        queue = self.queues[header.topic, header.queue_id]
        ids = []
        for _, body, properties in items:
            self.store(header.topic, header.queue_id, body, properties, header.sys_flag)
            ids.append(format_offset_id(self._host(), len(queue)))  # type: ignore[arg-type]
        answer = SendAnswer(",".join(ids), header.queue_id, len(queue) - len(items))
        return request.answer(code, answer.encode())

    def _end(self, link: Link, request: Command) -> None:
        self.ends.append((EndTransaction.decode(request.fields), request.remark))

    def store(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        properties: bytes = b"",
        sys_flag: int = 0,
        times: int = 0,
    ) -> None:
        queue = self.queues[topic, queue_id]
        queue.append(
            encode_record(
                topic=topic.encode(),
                body=body,
                properties=properties,
                queue_id=queue_id,
                flag=0,
                queue_offset=len(queue),
                log_offset=len(queue),
                sys_flag=sys_flag,
                born_timestamp_ms=0,
                born_host=self._host(),
                store_timestamp_ms=0,
                store_host=self._host(),
                reconsume_times=times,
                prepared_offset=0,
            )
        )
        self._arrived.set()
        self._arrived = asyncio.Event()

    def _pull(self, link: Link, request: Command) -> Awaitable[Command]:
        header = PullRequest.decode(request.fields)
        self.pulls.append(header)
        if header.sys_flag & PullFlag.COMMIT_OFFSET:  # at once: what is sent behind it comes later
            self.offsets[header.consumer_group, header.topic, header.queue_id] = header.commit_offset
        return self._held_pull(request, header)

    async def _held_pull(self, request: Command, header: PullRequest) -> Command:
        queue = self.queues[header.topic, header.queue_id]
        while header.queue_id in self.deaf_for:
            await _turn()
        if header.queue_offset == len(queue) and header.sys_flag & PullFlag.SUSPEND:
            try:
                async with asyncio.timeout(header.suspend_timeout_millis / 1000):
                    while header.queue_offset == len(queue):
                        await self._arrived.wait()
            except TimeoutError:
                pass
        return self._pull_answer(request, header, queue)

    def _pull_answer(self, request: Command, header: PullRequest, queue: list[bytes]) -> Command:
        start, first = header.queue_offset, self.first[header.topic, header.queue_id]
        if start > len(queue):
            code, next_offset = ResponseCode.PULL_OFFSET_MOVED, len(queue)
        elif start < first:
            code, next_offset = ResponseCode.PULL_OFFSET_MOVED, first
        elif start == len(queue):
            code, next_offset = ResponseCode.PULL_NOT_FOUND, start
        else:
            count = min(header.max_msg_nums, self.pull_messages_max)
            code, next_offset = ResponseCode.SUCCESS, min(start + count, len(queue))
        body = b"".join(queue[start:next_offset]) if code == ResponseCode.SUCCESS else b""
        return request.answer(code, PullAnswer(0, next_offset, first, len(queue)).encode(), body)

    def _heartbeat(self, link: Link, request: Command) -> Command:
        beat = orjson.loads(request.body)
        self.heartbeats.append(beat)
        if beat["consumerDataSet"] and beat["clientID"] not in self.members:
            self.members.append(beat["clientID"])
        return request.answer()

    def _unregister(self, link: Link, request: Command) -> Command:
        self.members = [member for member in self.members if member != request.fields["clientID"]]
        return request.answer()

    def _query_offset(self, link: Link, request: Command) -> Command:
        header = QueryGroupOffset.decode(request.fields)
        offset = self.offsets.get((header.consumer_group, header.topic, header.queue_id))
        if offset is None and self.gives_young_queues_whole and header.set_zero_if_not_found is not False:
            queue = header.topic, header.queue_id
            offset = 0 if self.queues[queue] and self.first[queue] == 0 else None
        if offset is None:
            return request.answer(ResponseCode.QUERY_NOT_FOUND)
        return request.answer(fields={"offset": str(offset)})

    async def _update_offset(self, link: Link, request: Command) -> Command:
        await self.stores.passed()
        header = UpdateGroupOffset.decode(request.fields)
        self.offsets[header.consumer_group, header.topic, header.queue_id] = header.commit_offset
        return request.answer()

    def _send_back(self, link: Link, request: Command) -> Command:
        if self.refusals:
            self.refusals -= 1
            return request.answer(self.refusal[0], remark=self.refusal[1])
        self.sent_back.append(SendBack.decode(request.fields))
        return request.answer()

    def _lock(self, link: Link, request: Command) -> Command:
        self.lock_requests += 1
        asked = LockRequest.decode(request.body)
        ours = [one for one in asked.queues if self.locks.setdefault(one, asked.client_id) == asked.client_id]
        return request.answer(body=encode_locked(ours))

    def _unlock(self, link: Link, request: Command) -> Command:
        asked = LockRequest.decode(request.body)
        for queue in asked.queues:
            if self.locks.get(queue) == asked.client_id:
                del self.locks[queue]
        return request.answer()

    def _max_offset(self, link: Link, request: Command) -> Command:
        header = QueueRequest.decode(request.fields)
        if self.before_ends is not None:
            self.before_ends(header.topic, header.queue_id)
        return request.answer(fields={"offset": str(len(self.queues[header.topic, header.queue_id]))})

    def _stats(self, link: Link, request: Command) -> Command:
        topic = request.fields["topic"]
        ends = {
            MessageQueue(topic, self.name, number): QueueBounds(0, len(self.queues[topic, number]), 0)
            for number in range(QUEUES)
        }
        return request.answer(body=b"".join(topic_stats_pieces(ends.items())))

    def _host(self) -> bytes:
        return encode_host(HOST, int(self.address.rpartition(":")[2]))


class ScriptedNameServer(Node):
    """`topics` is topic to (broker, queues, perm)."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: dict[str, list[tuple[ScriptedBroker, int, int]]] = {}
        self.up: list[str] = []
        """Names of the brokers that are registered."""
        self.silent = False
        self.is_starting = False

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._cluster,
        }

    def _cluster(self, link: Link, request: Command) -> Command:
        brokers = {
            name: {"brokerName": name, "cluster": "c", "brokerAddrs": {"0": f"{HOST}:1"}} for name in self.up
        }
        info = {"brokerAddrTable": brokers, "clusterAddrTable": {"c": self.up}}
        return request.answer(body=orjson.dumps(info))

    def _route(self, link: Link, request: Command) -> Command | None:
        if self.silent:
            return None
        if self.is_starting:
            return request.answer(ResponseCode.SYSTEM_ERROR, remark="waits for its brokers")
        parts = self.topics.get(request.fields["topic"])
        if not parts:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, remark="no route")
        route = {
            "brokerDatas": [
                {
                    "brokerName": broker.name,
                    "cluster": "c",
                    "brokerAddrs": {number: member.address for number, member in broker.ids.items()},
                }
                for broker, _, _ in parts
            ],
            "queueDatas": [
                {"brokerName": broker.name, "perm": perm, "readQueueNums": queues, "writeQueueNums": queues}
                for broker, queues, perm in parts
            ],
        }
        return request.answer(body=orjson.dumps(route))


class Cluster:
    def __init__(self, brokers: int) -> None:
        self.nameserver = ScriptedNameServer()
        self.brokers = [ScriptedBroker(f"broker-{number}") for number in range(brokers)]
        self.nameserver.up = [broker.name for broker in self.brokers]

    def create(self, topic: str, queues: int = QUEUES, perm: int = 6) -> None:
        self.nameserver.topics[topic] = [(broker, queues, perm) for broker in self.brokers]


@asynccontextmanager
async def cluster(brokers: int = 1, tls: ssl.SSLContext | None = None) -> AsyncIterator[Cluster]:
    made = Cluster(brokers)
    for node in (made.nameserver, *made.brokers):
        await node.start(tls=tls)
    try:
        yield made
    finally:
        for node in (made.nameserver, *made.brokers):
            await node.stop()


async def wait_for(condition: Callable[[], object], what: str) -> None:
    """Until the condition holds; fails after the deadline."""
    try:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await _turn()
    except TimeoutError:
        raise AssertionError(f"not within {WAIT_S} s: {what}") from None


async def _turn() -> None:
    """Let the loop and other threads do something."""
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.005)
