"""Every public name of `bolide` and `bolide.aio` says what it is, with an example; and every example runs against a
real server.

An example is what follows `Example::` in a docstring.  It may use the public names of its module and what `given` has:
clients that run, and what an application would bring along.
"""

import ast
import asyncio
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import bolide
import bolide.aio
from bolide.testing import EmbeddedServer
from tests.peers.certificates import Authority

ADDRESS = "127.0.0.1:9876"  # what the examples say; replaced by the address of the server at hand
EXAMPLE = "Example::\n"


class Enough(Exception):
    """An example that goes on for ever has gone on for long enough."""


def own_docstring(value: object) -> str:
    """As written for it, and not for what it is made of."""
    return (
        inspect.cleandoc(vars(value).get("__doc__") or "")
        if inspect.isclass(value)
        else inspect.getdoc(value) or ""
    )


def example_of(value: object) -> str:
    """The code of its example; empty if it has none."""
    _, found, behind = own_docstring(value).partition(EXAMPLE)
    lines: list[str] = []
    for line in behind.splitlines() if found else []:
        if line and not line.startswith(" "):
            break
        lines.append(line)
    return textwrap.dedent("\n".join(lines)).strip()


PUBLIC = [(module, name) for module in (bolide, bolide.aio) for name in sorted(module.__all__)]
DISTINCT = [
    (module, name)
    for module, name in PUBLIC
    if module is bolide or getattr(bolide, name) is not getattr(module, name)
]
"""Most names are the same in both modules."""


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda part: getattr(part, "__name__", part))
def test_every_public_name_has_a_docstring_with_an_example(module: ModuleType, name: str) -> None:
    value = getattr(module, name)
    assert own_docstring(value), f"{name} has no docstring of its own"
    assert example_of(value), f"{name} has no example: write one behind `{EXAMPLE.strip()}`"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server, bolide.Producer(server.nameserver) as producer:
        for topic in ("orders", "events", "prices"):
            producer.send(bolide.Message(topic, b"x"))
        yield server


def briefly(module: ModuleType) -> dict[str, Any]:
    """The clients whose examples would go on until somebody ends the program, so that they end at once."""
    lite, push = module.LitePullConsumer, module.PushConsumer

    class LitePullConsumer(lite):  # type: ignore[misc, valid-type]
        def poll(self, *given: Any, **named: Any) -> Any:
            raise Enough

    class PushConsumer(push):  # type: ignore[misc, valid-type]
        def run(self) -> Any:
            raise Enough

    return {"LitePullConsumer": LitePullConsumer, "PushConsumer": PushConsumer}


def given(module: ModuleType, producer: Any, reader: Any, poller: Any) -> dict[str, Any]:
    """What an example finds."""
    names = {name: getattr(module, name) for name in module.__all__}
    answer = nothing if module is bolide.aio else lambda *given: None
    return {
        **names,
        **briefly(module),
        "check": lambda message: bolide.Transaction.COMMIT,
        "consumer": bolide.PushConsumer(ADDRESS, group="given", listener=print),
        "database": SimpleNamespace(execute=answer, fetch=answer),
        "handle": print,
        "is_open": lambda: True,
        "pa": pa,
        "poller": poller,
        "producer": producer,
        "reader": reader,
        "secret_key": "secret",
        "store": lambda message: True,
        "till": SimpleNamespace(is_open=lambda: True),
    }


async def nothing(*given: object) -> None:
    pass


def compiled(module: ModuleType, name: str, code: str) -> CodeType:
    made = compile(code, f"{module.__name__}.{name}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(made, CodeType)
    return made


@pytest.mark.parametrize(("module", "name"), DISTINCT, ids=lambda part: getattr(part, "__name__", part))
def test_the_example_of_a_public_name_runs(
    module: ModuleType,
    name: str,
    server: EmbeddedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    require_tool: Callable[[str], str],
) -> None:
    monkeypatch.chdir(tmp_path)
    example = example_of(getattr(module, name))
    if "ca.pem" in example:
        require_tool("openssl")
        Authority(tmp_path)
    code = compiled(module, name, example.replace(ADDRESS, server.nameserver))
    poller = bolide.LitePullConsumer(server.nameserver, group="polling")
    poller.subscribe("prices")
    with (
        bolide.Producer(server.nameserver) as producer,
        bolide.PullConsumer(server.nameserver) as reader,
        poller,
    ):
        names = given(module, producer, reader, poller)
        names["queue"] = reader.queues("orders")[0]
        try:
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, names))  # noqa: S307 - our own docstrings
            else:
                exec(code, names)  # noqa: S102
        except Enough:
            pass
