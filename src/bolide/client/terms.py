"""Terms: on which terms a client is on the network: its name servers, and by which name it goes.

Clients of one process whose terms name the same instance are one to the brokers, and share what `hub.py` has.
"""

import difflib
import inspect
import re
import ssl
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, TypedDict

from bolide.client import checks
from bolide.client.hooks import Hooks
from bolide.model.addresses import parse_addresses
from bolide.model.credentials import Credentials
from bolide.model.errors import ConfigError
from bolide.net.tls import Tls

NAME_LENGTH_MAX = 64

_NAME = re.compile(r"[A-Za-z0-9._#%|-]+")


class Access(TypedDict, total=False):
    """How a cluster lets one in; see `ClientOptions`."""

    credentials: Credentials | None
    tls: bool | Tls | None


class ClientOptions(Access, total=False):
    """The keyword arguments that every client takes.

    Example::

        options: ClientOptions = {"instance_name": "shop-1", "credentials": Credentials("shop", secret_key)}
        producer = Producer("127.0.0.1:9876", group="orders", **options)

    Args:
        instance_name: clients of a process with the same name server, instance name and unit name share connections,
            routes and heartbeats, and are one member to a broker: `ip@instance_name`.  Without a name each client is on
            its own.  A name that is the same after a restart lets a broadcasting consumer find its offsets again.
        unit_name: the unit that the client is in, for clusters that have several: `ip@instance_name@unit_name`.
        credentials: who the client is, for clusters that demand it.
        tls: True encrypts all connections and trusts whom the machine trusts; `Tls(...)` says more.
        hooks: what is called before and after the client's work.
    """

    instance_name: str | None
    unit_name: str | None
    hooks: Sequence[Hooks]


@dataclass(frozen=True)
class Terms:
    """What was asked for, checked."""

    nameservers: tuple[str, ...]
    instance_name: str | None = None
    unit_name: str | None = None
    credentials: Credentials | None = None
    tls: Tls | None = None
    security: ssl.SSLContext | None = field(default=None, compare=False, repr=False)
    """What `tls` asks for, with its files read."""

    @classmethod
    def of(cls, nameserver: str, options: ClientOptions) -> "Terms":
        unknown = sorted(options.keys() - ClientOptions.__optional_keys__)
        if unknown:
            raise TypeError(_not_taken(unknown[0]))
        tls = _tls(options.get("tls"))
        return cls(
            nameservers=tuple(parse_addresses(nameserver)),
            instance_name=_name("instance_name", options.get("instance_name")),
            unit_name=_name("unit_name", options.get("unit_name")),
            credentials=_credentials(options.get("credentials")),
            tls=tls,
            security=tls.context() if tls is not None else None,
        )

    def client_id(self, address: str, own_name: str) -> str:
        """The original's form; `own_name` is for a client that was given no name."""
        parts = (address, self.instance_name or own_name, self.unit_name)
        return "@".join(part for part in parts if part)


def _not_taken(name: str) -> str:
    """Of an argument that went through a client's `__init__` to here: whose it is not, and which may be meant."""
    code = _called()
    own = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    taken = [one for one in own if one != "surroundings"] + sorted(ClientOptions.__optional_keys__)
    near = difflib.get_close_matches(name[:NAME_LENGTH_MAX].lower(), taken, n=1)
    hint = f": did you mean {near[0]}?" if near else f"; there are {', '.join(taken)}"
    return f"{code.co_qualname.partition('.')[0]} takes no argument {name!r}{hint}"


def _called() -> CodeType:
    """What the application has called of the clients: the frames know it, and no client has to say who it is."""
    found = _called.__code__
    for frame, _ in traceback.walk_stack(inspect.currentframe()):
        if not frame.f_globals.get("__name__", "").startswith("bolide.client."):
            break
        found = frame.f_code
    return found


def _credentials(value: Any) -> Credentials | None:
    if value is not None and not isinstance(value, Credentials):
        raise ConfigError(
            f"credentials is Credentials(access_key, secret_key), not a {type(value).__name__}"  # its repr may tell
        )
    return value


def _tls(value: Any) -> Tls | None:
    if value is None or value is False:
        return None
    if value is True:
        return Tls()
    if not isinstance(value, Tls):
        raise ConfigError(f"tls is True, or Tls(ca_file=...), not {checks.described(value)}")
    return value


def _name(what: str, value: Any) -> str | None:
    if value is None:
        return None
    name = checks.text(what, value, example="billing-1")
    if len(name) > NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{what} is a name of up to {NAME_LENGTH_MAX} letters, digits and ._#%|-, not {checks.described(value)}"
        )
    return name
