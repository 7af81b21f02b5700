"""State is not taken up by a step that means something else with it, nor for another cluster."""

import json
from pathlib import Path

import pytest

from bolide.model.errors import ConfigError
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.kept import FILE, keep
from bolide.pipeline.declared.recipes import Asked, dedup_recipe, definition_of, join_recipe


def run(
    tmp_path: Path,
    nameserver: str,
    *,
    is_join: bool = False,
    by: str = "key",
    kind: str = "inner",
    time: str | None = None,
) -> None:
    """What a run does before its queries begin."""
    asked = Asked(nameserver=nameserver, within="10 minutes", to_topic="out", time=time)
    recipe = (
        join_recipe("orders", "payments", by, kind, None, asked)
        if is_join
        else dedup_recipe("orders", by, asked)
    )
    keep(definition_of(recipe, tmp_path), Checkpoint(str(tmp_path)))
    (tmp_path / "queries" / "out").mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("is_join", [False, True], ids=["dedup", "join"])
def test_state_of_another_cluster_is_refused_with_both_named(tmp_path: Path, is_join: bool) -> None:
    run(tmp_path, "one:9876", is_join=is_join)
    with pytest.raises(
        ConfigError, match=r"the cluster at two:9876, and the state that .* of the one at one:9876"
    ):
        run(tmp_path, "two:9876", is_join=is_join)
    run(tmp_path, "one:9876", is_join=is_join)


def test_a_cluster_is_the_same_while_one_of_its_name_servers_stays(tmp_path: Path) -> None:
    run(tmp_path, "one:9876;two:9876")
    run(tmp_path, "three:9876,two:9876")
    run(tmp_path, "three:9876")
    with pytest.raises(ConfigError, match="Give the pipeline another name or checkpoint"):
        run(tmp_path, "one:9876")


def test_who_moved_all_name_servers_says_so_by_removing_the_file(tmp_path: Path) -> None:
    run(tmp_path, "one:9876")
    (tmp_path / FILE).unlink()
    run(tmp_path, "two:9876")


@pytest.mark.parametrize(
    ("is_join", "change", "told"),
    [
        (False, {"by": "id"}, "keeps state of orders by id"),
        (False, {"time": "bornTimestamp"}, "orders by key and bornTimestamp,.* key and storeTimestamp:"),
        (True, {"by": "tags"}, "on tags"),
        (True, {"kind": "left"}, r"\(left\)"),
        (True, {"time": "bornTimestamp"}, "and bornTimestamp,.* and storeTimestamp:"),
    ],
    ids=["dedup by", "dedup time", "join on", "join type", "join time"],
)
def test_state_by_something_else_is_refused(
    tmp_path: Path, is_join: bool, change: dict[str, str], told: str
) -> None:
    run(tmp_path, "one:9876", is_join=is_join)
    with pytest.raises(ConfigError, match=told):
        run(tmp_path, "one:9876", is_join=is_join, **change)
    run(tmp_path, "one:9876", is_join=is_join)


def test_a_join_that_was_written_down_without_its_times_is_of_any(tmp_path: Path) -> None:
    run(tmp_path, "one:9876", is_join=True)
    told = json.loads((tmp_path / FILE).read_text())
    for kept in told.values():
        del kept["times"]
    (tmp_path / FILE).write_text(json.dumps(told))
    run(tmp_path, "one:9876", is_join=True, time="bornTimestamp")
    with pytest.raises(ConfigError, match="keeps state of"):
        run(tmp_path, "one:9876", is_join=True)


def test_what_was_written_before_clusters_were_is_of_any(tmp_path: Path) -> None:
    run(tmp_path, "one:9876")
    told = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({name: kept["by"] for name, kept in told.items()}))
    run(tmp_path, "two:9876")
    with pytest.raises(ConfigError, match="the cluster at one:9876"):
        run(tmp_path, "one:9876")


def test_where_nothing_has_begun_nothing_is_kept(tmp_path: Path) -> None:
    run(tmp_path, "one:9876")
    (tmp_path / "queries" / "out").rmdir()
    run(tmp_path, "two:9876", by="id")
