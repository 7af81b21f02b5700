"""Access: which cluster a query or a ready-made pipeline talks to, as whom, and whether its connections are encrypted.

Clients are told it in arguments, Spark in options; both come from here.
"""

from dataclasses import dataclass

from bolide.admin.connection import AdminConnection
from bolide.client.instance import ClientInstance
from bolide.client.terms import Access
from bolide.model.addresses import parse_addresses
from bolide.model.credentials import Credentials
from bolide.model.errors import ConfigError
from bolide.net.tls import Tls
from bolide.pipeline.option_table import OptionTexts, named

ACCOUNT_OPTIONS = ("accessKey", "secretKey", "securityToken")
TLS_FILES = ("tlsCaFile", "tlsCertFile", "tlsKeyFile")
TLS_OPTIONS = ("tls", *TLS_FILES)


@dataclass(frozen=True)
class ClusterAccess:
    """A cluster by its name servers, and how it lets one in.

    It holds a secret: no file gets one.  What is written down of a cluster is its name servers.
    """

    nameserver: str
    credentials: Credentials | None = None
    tls: bool | Tls | None = None

    def admin(self) -> AdminConnection:
        return AdminConnection(self.nameserver, **self._access())

    def instance(self) -> ClientInstance:
        return ClientInstance(self.nameserver, **self._access())

    def options(self) -> dict[str, str]:
        """Options of a read or a write of Spark's."""
        return {"nameserver": self.nameserver, **access_options(self._access())}

    def _access(self) -> Access:
        return {"credentials": self.credentials, "tls": self.tls}


def access_options(access: Access) -> dict[str, str]:
    """What clients are told, as Spark is told it."""
    options: dict[str, str] = {}
    if (account := access.get("credentials")) is not None:
        told = (account.access_key, account.secret_key, account.security_token)
        options |= {name: text for name, text in zip(ACCOUNT_OPTIONS, told, strict=True) if text is not None}
    tls = access.get("tls")
    if isinstance(tls, Tls):
        files = zip(TLS_FILES, (tls.ca_file, tls.cert_file, tls.key_file), strict=True)
        options |= {name: str(file) for name, file in files if file is not None}
    if tls and options.keys().isdisjoint(TLS_FILES):
        options["tls"] = "true"
    return options


def read_cluster(texts: OptionTexts) -> ClusterAccess:
    """Takes note of everything that is wrong."""
    nothing: Access = {}
    return ClusterAccess(texts.hear("", _nameserver, texts), **texts.hear(nothing, _access, texts))


def _nameserver(texts: OptionTexts) -> str:
    return ";".join(named("nameserver", parse_addresses, texts.required("nameserver", "127.0.0.1:9876")))


def _access(texts: OptionTexts) -> Access:
    key, secret, token = (texts.get(name) for name in ACCOUNT_OPTIONS)
    if (key is None) != (secret is None):
        raise ConfigError("accessKey and secretKey go together: an account has a name and a secret")
    if token is not None and key is None:
        raise ConfigError("securityToken is that of an account: give accessKey and secretKey too")
    return {
        "credentials": None if key is None or secret is None else Credentials(key, secret, token),
        "tls": _tls(texts),
    }


def _tls(texts: OptionTexts) -> Tls | None:
    ca_file, cert_file, key_file = (texts.get(name) for name in TLS_FILES)
    said = [name for name in TLS_FILES if texts.get(name) is not None]
    is_wanted = texts.flag("tls", default=bool(said))
    if said and not is_wanted:
        raise ConfigError(f"{said[0]} contradicts tls=false")
    if key_file is not None and cert_file is None:
        raise ConfigError("tlsKeyFile is the key of a certificate: give tlsCertFile too")
    return Tls(ca_file, cert_file, key_file) if is_wanted else None
