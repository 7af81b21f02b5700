"""docs/compatibility.md, written from the table of requests and from what the tests have seen of `mqadmin`:
`python -m tests.docs.compatibility_page` writes it."""

from pathlib import Path

from bolide.wire.absent import ABSENT
from bolide.wire.codes import REQUESTS
from tests.interop import clients_table
from tests.interop.mqadmin import seen
from tests.interop.mqadmin.cases import CASES, NOT_HERE
from tests.interop.mqadmin.seen import Outcome

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"

HEAD = """# Compatibility

What of Apache RocketMQ's classic protocol and of its administration tool works with bolide. This page is written by
`make fix`, from the table of requests ([`wire/codes.py`](../src/bolide/wire/codes.py)), from the reasons why some are
missing ([`wire/absent.py`](../src/bolide/wire/absent.py)), and from what `tests/interop/test_mqadmin_table.py` has
seen: it runs every command of `mqadmin` of both versions against the original of that version and against bolide, and
compares what they say, without what differs in every run.
"""

MQADMIN = """## `mqadmin`

*same*: bolide and the original mean the same. *differs*: it works, and says it in another way. `-`: this version does
not have the command. Times, addresses, ids and the order of rows do not count, and of an error its code counts, not
its words.
"""

CLIENTS = """## Clients

What real clients do with bolide in the tests of every change ([`clients_table.py`](../tests/interop/clients_table.py)
names the tests), and what a client cannot do with any broker.
"""

ABSENT_COMMANDS = """### Commands of what bolide does not have

Their requests are answered with code 3 and the reason, and change nothing.
"""

CODES = """## Requests

All request codes of 4.9.7 and 5.5.0. A request that is not served is answered with code 3 and the reason.
"""


def rendered() -> str:
    kept = seen.load()
    return "\n".join(
        [
            HEAD,
            CLIENTS,
            clients_table.section(),
            MQADMIN,
            _commands(kept),
            _summary(kept),
            ABSENT_COMMANDS,
            _absent(),
            CODES,
            _codes(kept),
        ]
    )


def share(kept: dict[str, dict[str, dict[str, str]]], version: str) -> tuple[int, int]:
    """How many commands of a version work, and how many make sense here."""
    run = [outcome for outcome in kept[version]["commands"].values() if outcome]
    return sum(outcome != Outcome.FAILS for outcome in run), len(run)


def _commands(kept: dict[str, dict[str, dict[str, str]]]) -> str:
    versions = sorted(kept)
    head = f"| command | {' | '.join(versions)} | note |\n| --- |{' --- |' * len(versions)} --- |\n"
    return head + "".join(
        f"| `{case.command}` | "
        + " | ".join(kept[version]["commands"].get(case.command, "-") for version in versions)
        + f" | {case.note} |\n"
        for case in sorted(CASES, key=lambda case: case.command.lower())
    )


def _summary(kept: dict[str, dict[str, dict[str, str]]]) -> str:
    told = [
        f"{share(kept, version)[0]} of {share(kept, version)[1]} of {version}" for version in sorted(kept)
    ]
    return f"{' and '.join(told)} work.\n"


def _absent() -> str:
    reasons: dict[str, list[str]] = {}
    for command, reason in NOT_HERE.items():
        reasons.setdefault(reason, []).append(f"`{command}`")
    rows = "".join(f"| {', '.join(commands)} | {reason} |\n" for reason, commands in reasons.items())
    return f"| commands | why not |\n| --- | --- |\n{rows}"


def _codes(kept: dict[str, dict[str, dict[str, str]]]) -> str:
    versions = sorted(kept)
    numbers = {(int(number), name) for version in versions for name, number in kept[version]["codes"].items()}
    lines = ["| code | name | in | served | asks, or why not |\n| ---: | --- | --- | --- | --- |\n"]
    for number, name in sorted(numbers):
        having = ", ".join(version for version in versions if name in kept[version]["codes"])
        row = REQUESTS.get(number)  # type: ignore[call-overload]
        if row is None:
            told = f"no | {ABSENT[number][1]}"
        else:
            told = f"yes | {row.asks} ({row.sender.value})"
        lines.append(f"| {number} | `{name}` | {having} | {told} |\n")
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(rendered())
