"""As whom topics are read and written is what their file says, and else what was said before the command."""

from pathlib import Path

import pytest

from bolide import Credentials, Tls
from bolide.client.terms import Access
from bolide.pipeline.access import ClusterAccess, read_cluster
from bolide.pipeline.declared.access import with_access
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.definition import Definition
from bolide.pipeline.declared.files import load
from bolide.pipeline.declared.kept import FILE, keep
from bolide.pipeline.declared.recipes import Asked, dedup_recipe, definition_of
from bolide.pipeline.option_table import OptionTexts, Use

OPS, OWN = Credentials("ops", "very secret"), Credentials("own", "another secret")
TRUSTED = Tls(ca_file="/etc/ca.pem")
SAID: Access = {"credentials": OPS, "tls": TRUSTED}

FILE_TEXT = """\
nameserver: a:1
sources:
  plain: {topic: x}
  own: {topic: x, options: {ACCESSKEY: own, secretKey: another secret}}
  clear: {topic: x, options: {tls: false}}
  files: {format: rate}
sinks:
  topic: {from: plain, topic: y}
  path: {from: plain, path: out}
quarantine: {topic: z}
"""


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE_TEXT)
    found = load(file).definition
    assert found is not None
    return found


def test_what_a_part_says_itself_counts_before_what_was_said_for_all(definition: Definition) -> None:
    filled = with_access(definition, SAID)
    assert filled.quarantine is not None
    reads = {name: source.options for name, source in filled.sources.items() if name != "files"}
    assert {name: read_cluster(OptionTexts(options, Use.STREAM)) for name, options in reads.items()} == {
        "plain": ClusterAccess("a:1", OPS, TRUSTED),
        "own": ClusterAccess("a:1", OWN, TRUSTED),
        "clear": ClusterAccess("a:1", OPS),
    }
    for options in (filled.sinks["topic"].options, filled.quarantine.options):
        assert read_cluster(OptionTexts(options, Use.STREAM_WRITE)) == ClusterAccess("a:1", OPS, TRUSTED)


def test_only_topics_are_told_as_whom(definition: Definition) -> None:
    filled = with_access(definition, SAID)
    assert filled.sources["files"] == definition.sources["files"]
    assert filled.sinks["path"] == definition.sinks["path"]
    assert with_access(definition, {}) == definition


def test_what_is_kept_beside_a_checkpoint_names_no_account(tmp_path: Path) -> None:
    recipe = dedup_recipe("orders", "key", Asked(nameserver="a:1", within="1 hour", to_topic="out"))
    keep(with_access(definition_of(recipe, tmp_path), SAID), Checkpoint(str(tmp_path)))
    text = (tmp_path / FILE).read_text()
    assert "a:1" in text
    assert OPS.secret_key not in text
    assert OPS.access_key not in text
