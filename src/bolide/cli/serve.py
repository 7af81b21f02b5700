"""`bolide up`, `bolide nameserver` and `bolide broker`: run servers in the foreground until told to stop.

Ctrl-C or SIGTERM stops in order: connections are closed, tables written, the log synced.  A recovery is interrupted and
begins again with the next start.  A second signal stops at once.
A broker that can no longer trust its disk says so and ends with an exit code of its own.
"""

import asyncio
import gc
import os
import resource
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from bolide.cli.logs import set_up_logging
from bolide.cli.options import DEFAULT_DATA, Data, Settings, Verbose
from bolide.cli.outcome import CannotStart, ExitCode, StoreFailed, words
from bolide.cli.output import say
from bolide.cli.settings import parse_assignments
from bolide.model.errors import BolideError, RecoveryInterrupted, StoreError
from bolide.model.limit import MIB
from bolide.model.usual_nameserver import USUAL_NAMESERVER, nameserver_of_environment, nameserver_variable

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a supervisor, and a terminal that is closed."""

PORT_HELP = "0 takes a free one."
GARBAGE_THRESHOLD = 50_000
"""Requests leave few cycles behind, so looking for them can be rare."""

KEPT_BYTES = 32 * MIB
"""Freed memory that stays with the server: some answers to bulk pulls at a time."""


class Service(Protocol):
    """What can be run in the foreground."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def failed(self) -> BaseException: ...


def up(
    data: Data = Path(DEFAULT_DATA),
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Address to listen on. Clients are told the same one; for 0.0.0.0 they are told this"
            " machine's own address, or what --set brokerIP1=… says.",
        ),
    ] = "127.0.0.1",
    nameserver_port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help=PORT_HELP)] = 9876,
    broker_port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help=PORT_HELP)] = 10911,
    settings: Settings = None,
    verbose: Verbose = False,
) -> None:
    """Run a name server and a broker in this terminal.

    Prints where it serves, where it stores, and how to send a first message; Ctrl-C stops it.

    [bold]Examples[/bold]

        bolide up
        bolide up --data ./data --set flushDiskType=SYNC_FLUSH
        bolide up --host 0.0.0.0 --set brokerIP1=203.0.113.7   # behind NAT
    """
    from bolide.cli.recovery import watch_recovery
    from bolide.cli.standalone import Standalone, check_directory

    set_up_logging(verbose)
    recovery = watch_recovery()
    service = Standalone(
        data=data,
        host=host,
        nameserver_port=nameserver_port,
        broker_port=broker_port,
        settings=parse_assignments(settings or ()),
        progress=recovery,
    )
    check_directory(service.data)

    def announce() -> None:
        option = "" if service.nameserver == USUAL_NAMESERVER else f"-n {shlex.quote(service.nameserver)} "
        print(f"bolide serves: name server {service.nameserver}, broker {service.broker}")
        print(f"Messages are stored in {service.data.resolve()}")
        print(f"Send a first message: bolide send {option}greetings hello", flush=True)

    _run(_serve(service, announce, recovery.interrupt))


def nameserver(
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="HOST", help="Address to listen on.", show_default="0.0.0.0"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, metavar="PORT", help=PORT_HELP, show_default="9876"),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DIR", help="Where key-value settings are kept; in memory without it."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="The original's namesrv.conf, or TOML."),
    ] = None,
    settings: Settings = None,
    verbose: Verbose = False,
) -> None:
    """Run a name server alone.

    Options and --set win over the file.

    [bold]Examples[/bold]

        bolide nameserver
        bolide nameserver --host 10.0.0.5 --data /var/lib/bolide
    """
    from bolide.cli.server_settings import Given, ServerSettings
    from bolide.nameserver.app import NameServer
    from bolide.nameserver.config import NameServerConfig

    set_up_logging(verbose)
    options: dict[str, Given] = {}
    if data is not None:
        options["kvConfigPath"] = Given("--data", str(data.expanduser() / "kvConfig.json"))
    if host is not None:
        options["bindAddress"] = Given("--host", host)
    if port is not None:
        options["listenPort"] = Given("--port", str(port))
    chosen = ServerSettings(NameServerConfig, config, settings or (), options, {}).config()
    if chosen is None:
        raise typer.Exit(ExitCode.USAGE)
    server = NameServer(chosen)

    def announce() -> None:
        print(f"name server listens on {server.config.host}:{server.port}", flush=True)

    _run(_serve(_Trusted(server), announce))


BROKER_HELP = """Run a broker alone, or look after those that run.

Options and --set win over the file, and the file over the environment.
Without a name server it registers nowhere, and clients do not find it.
Without storePathRootDir it stores in ~/store.
--check ends with 0 when a broker would start here now, and with 1 when not:
it looks at every setting, at addresses (bindAddress, brokerIP1, namesrvAddr),
at the store (writable, room to begin, segments of the same size), at the port. A broker that
runs on the store now is a warning, and its port is not tried. It connects nowhere.

[bold]Examples[/bold]

    bolide broker -c broker.conf
    bolide broker -c broker.conf --check
    bolide broker -n 10.0.0.5:9876 --set brokerName=broker-b
    bolide broker list                 # those that run
"""


def broker(
    config: Path | None, nameserver: str | None, settings: list[str] | None, *, check: bool, verbose: bool
) -> None:
    """Run a broker with these options of `bolide broker`."""
    from bolide.broker.app import Broker
    from bolide.broker.config import BrokerConfig
    from bolide.cli.checks_start import REGISTERS_NOWHERE, examine_start
    from bolide.cli.recovery import watch_recovery
    from bolide.cli.server_settings import Given, ServerSettings
    from bolide.cli.standalone import check_directory

    set_up_logging(verbose)
    options = {} if nameserver is None else {"namesrvAddr": Given("--nameserver", nameserver)}
    usual = {"namesrvAddr": Given(nameserver_variable(), nameserver_of_environment())}
    given = ServerSettings(BrokerConfig, config, settings or (), options, usual)
    if check:
        raise typer.Exit(ExitCode.OK if given.check(examine_start(given.all)) else ExitCode.FAILED)
    chosen = given.config()
    if chosen is None:
        raise typer.Exit(ExitCode.USAGE)
    check_directory(Path(chosen.root).expanduser())
    recovery = watch_recovery()
    server = Broker(chosen, progress=recovery)

    def announce() -> None:
        names = chosen.nameservers
        where = f"registers with {names}" if names else REGISTERS_NOWHERE
        print(f"broker {chosen.broker_name} serves at {server.address}, {where}", flush=True)

    _run(_serve(server, announce, recovery.interrupt))


class _Trusted:
    """A name server keeps nothing that a bad disk could spoil."""

    def __init__(self, server: Any) -> None:
        self.start = server.start
        self.stop = server.stop

    async def failed(self) -> BaseException:
        error: BaseException = await asyncio.get_running_loop().create_future()
        return error


async def _serve(
    service: Service, announce: Callable[[], None], interrupt: Callable[[], None] = lambda: None
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with ExitStack() as before:
        for (
            number
        ) in STOP_SIGNALS:  # a recovery keeps the loop busy: only a plain handler is called meanwhile
            before.callback(signal.signal, number, signal.getsignal(number))
            signal.signal(number, lambda *_: _on_signal(stop, interrupt))
        try:
            await service.start()
        except RecoveryInterrupted as error:
            say(str(error))
            raise typer.Exit(ExitCode.INTERRUPTED) from error
        except (BolideError, OSError) as error:
            raise CannotStart(words(error)) from error
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _on_signal, stop, interrupt)
        before.pop_all()  # the loop hears them from now on, and cleans up behind itself
    # What start has made stays for good: the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    announce()
    stopping = asyncio.ensure_future(stop.wait())
    failing = asyncio.ensure_future(service.failed())
    await asyncio.wait((stopping, failing), return_when=asyncio.FIRST_COMPLETED)
    reason = failing.result() if failing.done() else None
    for waiting in (stopping, failing):
        waiting.cancel()
    unwritten = await _stop(service)
    if reason is not None:
        raise StoreFailed(
            f"the store cannot be trusted any more: {reason}. What was acknowledged as synced is safe;"
            " check the disk, then start again to recover"
        )
    if unwritten is not None:
        raise StoreFailed(str(unwritten)) from unwritten


async def _stop(service: Service) -> StoreError | None:
    """Stop; what could not be written down at the end."""
    try:
        await service.stop()
    except StoreError as error:
        return error
    return None


def _on_signal(stop: asyncio.Event, interrupt: Callable[[], None]) -> None:
    if stop.is_set():
        print("stopped at once", file=sys.stderr, flush=True)
        os._exit(ExitCode.INTERRUPTED)
    stop.set()
    interrupt()


def _run(work: Coroutine[Any, Any, None]) -> None:
    """On uvloop where it is installed."""
    from bolide.net.freed_memory import keep_freed_memory

    _raise_file_limit()
    keep_freed_memory(KEPT_BYTES)
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


def _raise_file_limit() -> None:
    """Connections and queue files need descriptors: take as many as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
