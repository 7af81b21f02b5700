"""The Python form says the same as YAML, and is checked by the same rules."""

from pathlib import Path

from bolide.pipeline.declared.definition import Function
from tests.unit.pipeline.declared.stage import loaded, problems

SOUND = """\
    from bolide.pipeline import Pipeline

    pipeline = Pipeline("shop", nameserver="127.0.0.1:9876", trigger="5 seconds")
    pipeline.source("orders", topic="orders", options={"failOnDataLoss": False})

    @pipeline.step("orders", expect={"good": "tags IS NOT NULL"})
    def clean(orders):
        return orders

    pipeline.sql("paid", "SELECT * FROM clean WHERE tags = 'PAID'")
    pipeline.sink("archive", "paid", format="parquet", path="out", partition_by=["tags"])
"""


def test_calls_say_what_yaml_says(tmp_path: Path) -> None:
    found = loaded(tmp_path, SOUND, "shop.py")
    assert found.problems == []
    definition = found.definition
    assert definition is not None
    assert (definition.name, definition.trigger) == ("shop", "5 seconds")
    assert definition.sources["orders"].options["failOnDataLoss"] == "false"
    clean = definition.steps["clean"]
    assert isinstance(clean.work, Function)
    assert callable(clean.work.code.object)
    assert [one.name for one in clean.expectations] == ["good"]
    assert definition.steps["paid"].inputs == ["clean"]
    assert definition.sinks["archive"].options == {"path": str(tmp_path / "out")}


def test_errors_have_the_line_of_the_call(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, SOUND.replace('format="parquet"', 'fromat="parquet"'), "other.py")
    assert told == "11: the sink archive has no key 'fromat': did you mean format?"


def test_a_file_that_fails_is_told_with_its_line(tmp_path: Path) -> None:
    assert problems(tmp_path, "x = 1\nraise ValueError('no')\n", "fails.py") == ["2: ValueError: no"]
    assert problems(tmp_path, "import no_such_module_here\n", "imports.py")[0].startswith(
        "1: an import failed"
    )
    assert problems(tmp_path, "x = (\n", "syntax.py")[0].startswith("1: SyntaxError")
    assert "this one has no Pipeline" in problems(tmp_path, "x = 1\n", "empty.py")[0]
    twice = SOUND + '    pipeline.source("orders", topic="other")\n'
    assert problems(tmp_path, twice, "twice.py")[0].startswith("12: ValueError: sources has 'orders' already")
