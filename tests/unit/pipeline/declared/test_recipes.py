"""Recipes become definitions as a file would: named by what they do, checked by the same rules, and written as YAML."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from bolide.model.errors import ConfigError
from bolide.pipeline.declared.definition import Dedup, Join, Sql
from bolide.pipeline.declared.files import load
from bolide.pipeline.declared.recipes import Asked, Recipe, dedup_recipe, definition_of, join_recipe

ASKED = Asked(nameserver="127.0.0.1:9876", within="10 minutes", to_topic="out")


def test_a_recipe_is_what_its_yaml_says(tmp_path: Path) -> None:
    recipes: list[Recipe] = [
        dedup_recipe("orders", "key", ASKED),
        join_recipe("orders", "pay-ments", "key", "left", None, ASKED),
    ]
    for recipe in recipes:
        file = tmp_path / "recipe.yaml"
        file.write_text(yaml.safe_dump(recipe))
        found = load(file)
        assert found.errors == []
        assert found.definition is not None
        made = definition_of(recipe, tmp_path)
        for said, written in zip(made.steps.values(), found.definition.steps.values(), strict=True):
            assert said.inputs == written.inputs
            same_line = replace(written.work, line=0) if isinstance(written.work, Sql) else written.work
            assert said.work == same_line
        assert made.name == found.definition.name


def test_topics_get_names_that_sql_takes(tmp_path: Path) -> None:
    made = definition_of(join_recipe("a-b", "a_b", "key", "inner", None, ASKED), tmp_path)
    assert list(made.sources) == ["a_b", "a_b_"]
    made = definition_of(dedup_recipe("%DLQ%shop", "id", ASKED), tmp_path)
    assert list(made.sources) == ["_DLQ_shop"]
    made = definition_of(dedup_recipe("7joined", "id", ASKED), tmp_path)
    assert list(made.sources) == ["_7joined"]
    made = definition_of(join_recipe("joined", "other", "key", "inner", None, ASKED), tmp_path)
    assert list(made.sources) == ["joined_", "other"]


def test_messages_keep_what_they_say_and_parquet_has_all_columns(tmp_path: Path) -> None:
    to_topic = definition_of(dedup_recipe("orders", "id", ASKED), tmp_path)
    assert to_topic.sinks["out"].input == "messages"
    files = replace(ASKED, to_topic=None, to_parquet="files")
    to_files = definition_of(dedup_recipe("orders", "id", files), tmp_path)
    assert to_files.sinks["out"].input == "deduplicated"
    assert to_files.sinks["out"].options["path"] == str(Path("files").absolute())
    work = to_files.steps["deduplicated"].work
    assert work == Dedup(by="id", within="10 minutes", late=None, time="storeTimestamp")
    joined = definition_of(join_recipe("a", "b", "key", "inner", None, files), tmp_path).steps["joined"].work
    assert isinstance(joined, Join)
    assert joined.select is None


def test_bad_rows_are_left_out_of_a_topic_and_never_of_files(tmp_path: Path) -> None:
    skipping = replace(ASKED, skip_bad_rows=True)
    assert (
        definition_of(dedup_recipe("a", "id", skipping), tmp_path).sinks["out"].options["badRows"] == "skip"
    )
    with pytest.raises(ConfigError, match="--skip-bad-rows is for --to TOPIC"):
        dedup_recipe("a", "id", replace(skipping, to_topic=None, to_parquet="files"))


def test_another_target_is_another_pipeline() -> None:
    def name(asked: Asked, topic: str = "orders") -> str:
        return str(dedup_recipe(topic, "id", asked)["name"])

    files = replace(ASKED, to_topic=None, to_parquet="files")
    assert name(ASKED) == "dedup-orders-to-out"
    assert name(replace(ASKED, name="mine")) == "mine"
    names = [
        name(ASKED),
        name(replace(ASKED, to_topic="b")),
        name(files),
        name(replace(files, to_parquet="b/files")),
    ]
    assert len(set(names)) == 4
    long = [name(ASKED, "t" * 126 + end) for end in "ab"]
    assert len(set(long)) == 2
    assert all(len(one) <= 128 for one in long)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (replace(ASKED, to_topic=None), "say where the rows go"),
        (replace(ASKED, to_parquet="x"), "say where the rows go"),
        (replace(ASKED, to_topic="orders"), "orders would be read and written"),
        (replace(ASKED, within="soon"), "within: 'soon' is no time"),
        (replace(ASKED, trigger="soon"), "trigger: 'soon' is no trigger"),
        (replace(ASKED, starting="begining"), "the source orders: startingOffsets"),
        (replace(ASKED, options={"maxOfsetsPerTrigger": "1"}), "did you mean maxOffsetsPerTrigger?"),
    ],
)
def test_what_is_wrong_is_told_without_a_place_in_a_file(tmp_path: Path, asked: Asked, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        definition_of(dedup_recipe("orders", "id", asked), tmp_path)
    assert told in str(raised.value)
    assert "recipe:" not in str(raised.value)
