"""Identity: who a broker is, as clients, records and answers say it."""

from dataclasses import dataclass

from bolide.broker.config import BrokerConfig
from bolide.model.message import Property
from bolide.model.pairs import NAME_END, PAIR_END
from bolide.net.link import encode_host
from bolide.wire.command import LANGUAGE, VERSION


@dataclass(frozen=True)
class Identity:
    cluster: str
    name: str
    broker_id: int
    host: str
    port: int
    store_host: bytes
    """Address and port as records store them."""
    host_hex: bytes
    """The same as message ids begin with it."""
    properties_suffix: bytes
    """The pairs that this broker adds to the properties of a message."""
    answer_tail: bytes
    """What all answers to plain sends share, up to the opaque."""

    @property
    def address(self) -> str:
        """Where clients reach this broker; what the name server tells them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def identity_of(config: BrokerConfig, host: str, port: int) -> Identity:
    store_host = encode_host(host, port)
    trace = "true" if config.trace_on else "false"
    return Identity(
        cluster=config.cluster_name,
        name=config.broker_name,
        broker_id=config.broker_id,
        host=host,
        port=port,
        store_host=store_host,
        host_hex=store_host.hex().upper().encode(),
        properties_suffix=_pairs(
            (Property.MSG_REGION, config.region),
            (Property.TRACE_ON, trace),
            (Property.CLUSTER, config.cluster_name),
        ),
        answer_tail=(
            f',"MSG_REGION":"{config.region}","TRACE_ON":"{trace}"}},"flag":1,"language":"{LANGUAGE}"'
            f',"version":{VERSION},"opaque":'
        ).encode(),
    )


def _pairs(*pairs: tuple[str, str]) -> bytes:
    return "".join(f"{name}{NAME_END}{value}{PAIR_END}" for name, value in pairs).encode()
