"""docs/settings.md, written from the tables of settings: `python -m tests.docs.settings_page` writes it."""

from collections.abc import Iterator
from pathlib import Path

from bolide.broker.config import PARTS, BrokerConfig
from bolide.broker.foreign_settings import FOREIGN
from bolide.model.settings_table import Foreign, SettingsTable
from bolide.nameserver.config import FOREIGN as FOREIGN_OF_NAME_SERVER
from bolide.nameserver.config import NameServerConfig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"

HEAD = """# Settings of a broker, and of a name server

A broker takes the keys of the original's `broker.conf`, from a properties file or TOML (`bolide broker -c FILE`) and
from `--set key=value`, which wins. `bolide broker --check -c FILE` says all that is wrong with a file, with line
numbers, starts nothing, and ends with 0 when a broker would start, with 1 when not, and with 2 when the file cannot be
read. When the settings are sound it looks at this machine too: whether `bindAddress` and `brokerIP1` can be resolved
and `listenPort` is free, whether the store can be written and its segments have the size that is set. A broker that
runs on the store now is a warning, and its port is not tried: so a file can be checked before a restart. It connects
nowhere: whether name servers answer, `bolide doctor` finds out.

This page is written from [`broker/config.py`](../src/bolide/broker/config.py) and
[`broker/foreign_settings.py`](../src/bolide/broker/foreign_settings.py) by `make fix`; a test holds them together.

## What can be set

*Live* settings may change while the broker runs: `mqadmin updateBrokerConfig`. Numbers outside of their bounds are
refused, at the start and at run time, and change nothing.

| key | default | may be | live | what it does |
| --- | --- | --- | --- | --- |
"""

PARTS_HEAD = """
A store is one directory. The keys by which the original puts parts of it elsewhere are taken when they say where the
part is anyway, and refused otherwise; a link does the same.

| key | must be |
| --- | --- |
"""

REFUSED_HEAD = """
## What the original has and is refused here

Taken in silence when it says what is the original's default, as in a file that spells the defaults out. With any other
value no broker starts: it would keep fewer copies of a message than were asked for, leave a door open, or start empty
beside the messages.

| key | default there | with another value |
| --- | --- | --- |
"""

WITHOUT_EFFECT_HEAD = """
## What the original has and does nothing here

Taken in silence with the original's default, with a warning that says what it means otherwise.
"""


NAME_SERVER_HEAD = """
## A name server

It takes the keys of the original's `namesrv.conf` in the same ways (`bolide nameserver -c FILE`), from
[`nameserver/config.py`](../src/bolide/nameserver/config.py). *Live* settings change with `mqadmin updateNamesrvConfig`,
until it stops.

| key | default | may be | live | what it does |
| --- | --- | --- | --- | --- |
"""


def rendered() -> str:
    lines = [HEAD, *_rows(BrokerConfig()), PARTS_HEAD]
    lines += [f"| `{key}` | `{part}` in `storePathRootDir` |\n" for key, part in PARTS.items()]
    lines.append(REFUSED_HEAD)
    refused = [one for one in FOREIGN.values() if one.refused]
    lines += [f"| `{one.key}` | {_defaults(one)} | {one.means} |\n" for one in refused]
    lines.append(WITHOUT_EFFECT_HEAD)
    for means in dict.fromkeys(one.means for one in FOREIGN.values() if not one.refused):
        keys = [f"`{one.key}`" for one in FOREIGN.values() if one.means == means]
        lines.append(f"\n**{means[0].upper()}{means[1:]}.** {', '.join(keys)}\n")
    lines += [NAME_SERVER_HEAD, *_rows(NameServerConfig())]
    for refused_here, what in ((True, "Refused unless it is off"), (False, "Taken, and does nothing here")):
        keys = [f"`{one.key}`" for one in FOREIGN_OF_NAME_SERVER.values() if one.refused is refused_here]
        lines.append(f"\n**{what}.** {', '.join(keys)}\n")
    return "".join(lines)


def _rows(table: SettingsTable) -> Iterator[str]:
    default = table.as_settings()
    for key, (_, setting) in table.settings().items():
        live = "yes" if setting.live else ""
        yield f"| `{key}` | {_code(default[key])} | {setting.allowed} | {live} | {setting.about} |\n"


def _code(value: str) -> str:
    return f"`{value}`" if value else "empty"


def _defaults(foreign: Foreign) -> str:
    return " or ".join(_code(default) for default in foreign.defaults)


if __name__ == "__main__":
    PAGE.write_text(rendered())
