"""Access: as whom the commands talk to a cluster, and whether in secret.  It is said once, before the command.

    bolide --access-key ops --secret-key-file ~/.bolide/secret topic list

What was said is kept here for the one command that the process runs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.model.errors import ConfigError

if TYPE_CHECKING:
    from bolide.client.terms import Access
    from bolide.pipeline.access import ClusterAccess

AccessKey = Annotated[
    str | None,
    typer.Option(
        "--access-key",
        metavar="NAME",
        envvar="BOLIDE_ACCESS_KEY",
        help="The account, for clusters that demand one.",
    ),
]
SecretKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-key-file",
        metavar="FILE",
        envvar="BOLIDE_SECRET_KEY_FILE",
        help="A file with the secret of the account.",
    ),
]
TlsFlag = Annotated[
    bool,
    typer.Option(
        "--tls", envvar="BOLIDE_TLS", help="Encrypt connections, and trust whom the machine trusts."
    ),
]
TlsCaFile = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca-file",
        metavar="FILE",
        envvar="BOLIDE_TLS_CA_FILE",
        help="The same, and trust these authorities (PEM).",
    ),
]

_said: list["Access"] = []


def keep(access_key: str | None, secret_key_file: Path | None, tls: bool, tls_ca_file: Path | None) -> None:
    """What was said before the command; `ConfigError` for a half of it."""
    _said.clear()
    if access_key is None and secret_key_file is None and not tls and tls_ca_file is None:
        return  # as nearly always: nothing is loaded for it
    from bolide.client.terms import Access
    from bolide.model.credentials import Credentials
    from bolide.net.tls import Tls

    said: Access = {}
    if (access_key is None) != (secret_key_file is None):
        raise ConfigError("an account has a name and a secret: give both --access-key and --secret-key-file")
    if access_key is not None and secret_key_file is not None:
        said["credentials"] = Credentials(access_key, _secret(secret_key_file))
    if tls or tls_ca_file is not None:
        ca_file = tls_ca_file and tls_ca_file.expanduser().absolute()  # workers of Spark may be elsewhere
        said["tls"] = Tls(ca_file=ca_file)
    _said.append(said)


def keep_of_line(said: Mapping[str, Any]) -> None:
    """The same of a command line that is still being written; its files are texts there."""
    secret_key_file, tls_ca_file = (
        None if said.get(name) is None else Path(said[name]) for name in ("secret_key_file", "tls_ca_file")
    )
    keep(said.get("access_key"), secret_key_file, bool(said.get("tls")), tls_ca_file)


def access() -> "Access":
    """The arguments that every client and every administrative connection of a command gets."""
    return _said[0] if _said else {}


def cluster_at(nameserver: str) -> "ClusterAccess":
    """The same for what runs on Spark, whose tasks have clients of their own."""
    from bolide.pipeline.access import ClusterAccess

    return ClusterAccess(nameserver, **access())


def _secret(path: Path) -> str:
    try:
        secret = path.expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--secret-key-file {path} cannot be read: {error}") from None
    if not secret:
        raise ConfigError(f"--secret-key-file {path} is empty: it holds the secret, and nothing else")
    return secret
