"""Key-value settings: codes 100, 101, 102, 219."""

from bolide.nameserver.state import NameServerState
from bolide.net.link import Link
from bolide.wire.bodies.route import encode_kv_table
from bolide.wire.command import Command
from bolide.wire.headers.route import KvAnswer, KvRequest, NamespaceRequest, PutKv


async def put(state: NameServerState, link: Link, request: Command) -> Command:
    header = PutKv.decode(request.fields)
    await state.kv.put(header.namespace, header.key, header.value)
    return request.answer()


def get(state: NameServerState, link: Link, request: Command) -> Command:
    header = KvRequest.decode(request.fields)
    return request.answer(fields=KvAnswer(state.kv.get(header.namespace, header.key)).encode())


async def delete(state: NameServerState, link: Link, request: Command) -> Command:
    header = KvRequest.decode(request.fields)
    await state.kv.delete(header.namespace, header.key)
    return request.answer()


def list_namespace(state: NameServerState, link: Link, request: Command) -> Command:
    header = NamespaceRequest.decode(request.fields)
    return request.answer(body=encode_kv_table(state.kv.namespace(header.namespace)))
