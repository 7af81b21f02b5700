"""An Apache 5.5.0 that demands TLS and credentials: the only server at hand that does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bolide import BolideError, ClientOptions, Credentials, Message, NoNameServer, Producer, Tls
from tests.peers import java
from tests.peers.apache import TEST_FLAGS, Apache
from tests.peers.certificates import Authority
from tests.peers.server import READY_SECONDS, Broker, NameServer

ALICE = Credentials("alice", "the secret of alice")
PROVIDERS = "org.apache.rocketmq.auth.authentication.provider"
DEMANDING = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{PROVIDERS}.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{PROVIDERS}.LocalAuthenticationMetadataProvider",
    "initAuthenticationUser": f'{{"username":"{ALICE.access_key}","password":"{ALICE.secret_key}"}}',
    "innerClientAuthenticationCredentials": (
        f'{{"accessKey":"{ALICE.access_key}","secretKey":"{ALICE.secret_key}"}}'
    ),
}


@dataclass(frozen=True)
class Secured:
    nameserver: str
    ca: Path
    secret: Path
    """Files for the command line: whom it trusts, and the secret of alice."""

    @property
    def options(self) -> ClientOptions:
        return {"tls": Tls(ca_file=self.ca), "credentials": ALICE}

    @property
    def words(self) -> list[str]:
        """What is said before a command."""
        account = ["--access-key", ALICE.access_key, "--secret-key-file", str(self.secret)]
        return [*account, "--tls-ca-file", str(self.ca)]


@contextmanager
def secured_apache(home: Path) -> Iterator[Secured]:
    authority = Authority(home / "authority")
    certificate = authority.certificate("server", "IP:127.0.0.1")
    flags = (
        *(*TEST_FLAGS, "-Dtls.test.mode.enable=false", "-Dtls.server.mode=enforcing", "-Dtls.enable=true"),
        *(f"-Dtls.server.certPath={certificate.cert}", f"-Dtls.server.keyPath={certificate.key}"),
        *("-Dtls.client.authServer=true", f"-Dtls.client.trustCertPath={authority.ca}"),
    )
    kind = Apache(java.LATEST, flags)
    nameserver = NameServer(kind, home / "namesrv")
    broker = Broker(kind, home / "broker", "broker-a", [nameserver], DEMANDING)
    secured = Secured(nameserver.address, authority.ca, home / "secret")
    secured.secret.write_text(f"{ALICE.secret_key}\n")
    try:
        nameserver.process = kind.launch_nameserver(nameserver.home, nameserver.port)
        nameserver.process.wait_ready(lambda: _reaches(secured, NoNameServer), READY_SECONDS)
        broker.launch().wait_ready(lambda: _reaches(secured, BolideError), READY_SECONDS)
        yield secured
    finally:
        broker.kill()
        nameserver.kill()


def _reaches(server: Secured, not_yet: type[BolideError]) -> bool:
    """Whether a first send has another end than this; bare probes are turned away here."""
    try:
        with Producer(server.nameserver, **server.options) as producer:
            producer.send(Message("started", b"x"))
    except not_yet:
        return False
    except BolideError:
        pass
    return True
