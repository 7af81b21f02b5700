"""A cluster as clients and Spark are told of it, and a secret that is in nothing that is written down."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import Credentials, Message, Producer, Tls
from bolide.pipeline.access import ClusterAccess, read_cluster
from bolide.pipeline.archive.run import source_options
from bolide.pipeline.archive.wanted import Wanted
from bolide.pipeline.option_table import OptionTexts, Use
from bolide.pipeline.options import parse_options
from bolide.pipeline.replay.folder import ReplayFolder
from bolide.pipeline.replay.plan import Asked
from bolide.pipeline.replay.source import plan_topics
from bolide.pipeline.stats.sources import ClusterSource, Span
from bolide.testing import EmbeddedServer

OPS = Credentials("ops", "very secret")
CLUSTERS = [
    ClusterAccess("a:1;b:2"),
    ClusterAccess("a:1", OPS),
    ClusterAccess("a:1", None, Tls()),
    ClusterAccess("a:1", Credentials("ops", "very secret", "short-lived")),
    ClusterAccess("a:1", None, Tls(cert_file="/etc/me.pem")),
    ClusterAccess("a:1", None, Tls(ca_file="/etc/ca.pem", cert_file="/etc/me.pem", key_file="/etc/me.key")),
    ClusterAccess("a:1", OPS, Tls(ca_file="/etc/ca.pem")),
]


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


@pytest.mark.parametrize("use", [Use.BATCH, Use.STREAM, Use.WRITE, Use.STREAM_WRITE])
@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
def test_spark_is_told_of_a_cluster_what_clients_are_told(cluster: ClusterAccess, use: Use) -> None:
    texts = OptionTexts(cluster.options(), use)
    assert read_cluster(texts) == cluster
    assert not texts.complaints
    with_flag = ClusterAccess("a:1", tls=True)
    assert read_cluster(OptionTexts(with_flag.options(), use)) == ClusterAccess("a:1", tls=Tls())


def test_what_ready_made_pipelines_read_is_read_as_whom_they_were_told() -> None:
    cluster = CLUSTERS[-1]
    archive = source_options(Wanted(["orders"], cluster, "1 minute"))
    stats = ClusterSource(cluster, ["orders"]).options(Span())
    for options, use in ((archive, Use.STREAM), (stats, Use.BATCH)):
        assert parse_options(options, use).cluster == cluster


def test_the_secret_is_shown_by_nothing_that_people_read() -> None:
    cluster = CLUSTERS[-1]
    for shown in (
        repr(cluster),
        str(ClusterSource(cluster, ["orders"])),
        repr(Wanted(["x"], cluster, "1 s")),
    ):
        assert OPS.secret_key not in shown


def test_what_is_kept_of_a_replay_names_its_cluster_and_no_secret(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    with Producer(server.nameserver, group="tests") as producer:
        producer.send(Message("orders", b"1"))
    folder = ReplayFolder.of("r1", str(tmp_path))
    asked = Asked("copy", ("orders",), nameserver=server.nameserver)
    folder.keep(plan_topics(ClusterAccess(server.nameserver, OPS), asked, "r1", "replay-r1", 0))
    text = (folder.path / "replay.json").read_text()
    assert json.loads(text)["asked"]["nameserver"] == server.nameserver
    assert OPS.secret_key not in text
