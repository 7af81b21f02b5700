"""`bolide message recall`: a message that waits for its time, and is not to come."""

import asyncio
from typing import Annotated

import typer

from bolide.cli.access import access
from bolide.cli.ask import ask, confirm
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver, Preview, Yes
from bolide.cli.output import say, write_json
from bolide.cli.since import format_moment

GROUP = "bolide-recall"
TIMEOUT_MS = 10_000


def recall(
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="What its send gave to recall it by.")],
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Call a message back that waits for its time: nobody gets it.

    `bolide send --at` and `--in` write the handle, and receipts have it in every language.
    The broker must permit it (recallMessageEnable=true). In the second that it is due it is too late.
    A second recall of a message is acknowledged as the first was: the broker looks for it only when it is due.

    [bold]Examples[/bold]

        handle=$(bolide send reminders 'call back' --in 2h)
        bolide message recall "$handle" --preview
        bolide message recall "$handle" --yes
    """
    from bolide.admin.delays import check_recalls
    from bolide.model.recall import decode_handle

    called = decode_handle(handle)
    due = f"within a second after {format_moment(called.after_ms)}"
    untold = None
    if not preview:
        confirm(
            f"Recall the message of {called.topic} that is due {due}?",
            yes=yes,
            stakes="nobody gets a message that is recalled",
            otherwise="nothing was recalled",
        )
        asyncio.run(_recall(nameserver, handle))
    else:
        untold = ask(nameserver, lambda servers: check_recalls(servers, called.broker_name))
    if as_json:
        write_json(
            {
                "id": called.unique_key,
                "topic": called.topic,
                "broker": called.broker_name,
                "due_after_ms": called.after_ms,
                "preview": preview,
            }
        )
    elif preview:
        say(
            f"the message {called.unique_key} of {called.topic}, due {due} on {called.broker_name}, would not come."
            " Nothing was recalled"
        )
    else:
        say(f"recalled {called.unique_key} of {called.topic}, which was due {due}")
    if untold is not None:
        say(f"{called.broker_name} could not be asked whether it permits that: {untold}")


async def _recall(nameserver: str, handle: str) -> None:
    from bolide.aio import Producer

    async with Producer(nameserver, group=GROUP, timeout_ms=TIMEOUT_MS, **access()) as producer:
        await producer.recall(handle)
