"""What `check` says about a file: every error at once, with its line and the nearest right word."""

from pathlib import Path

import pytest

from tests.unit.pipeline.declared.stage import loaded, problems

QUERY = "sql: SELECT * FROM orders WHERE tags = 'PAID'"

SOUND = """\
    name: shop
    nameserver: 127.0.0.1:9876
    sources:
      orders: {topic: orders}
    steps:
      paid:
        sql: SELECT * FROM orders WHERE tags = 'PAID'
    sinks:
      archive: {from: paid, path: out}
"""


def test_a_sound_file_has_no_problems_and_says_what_it_is(tmp_path: Path) -> None:
    found = loaded(tmp_path, SOUND)
    assert found.problems == []
    assert found.definition is not None
    assert found.definition.sources["orders"].options == {
        "subscribe": "orders",
        "nameserver": "127.0.0.1:9876",
    }
    assert found.definition.sinks["archive"].format == "parquet"
    assert found.definition.sinks["archive"].options == {"path": str(tmp_path / "out")}
    assert found.definition.steps["paid"].inputs == ["orders"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("sources:", "surces:"), "3: a pipeline has no key 'surces': did you mean sources?"),
        (
            ("{topic: orders}", "{topik: orders}"),
            "4: the source orders has no key 'topik': did you mean topic?",
        ),
        (("topic: orders", "topic: a b"), "4: the source orders: subscribe: "),
        (
            ("from: paid", "from: payed"),
            "9: the sink archive gets rows of payed, and there is no such source or step: did you mean paid?",
        ),
        (
            ("FROM orders", "FROM ordres"),
            "7: the step paid reads ordres, and there is no such source or step: did you mean orders?",
        ),
        (("path: out", "format: parquet"), "9: the sink archive needs path: where shall its files be?"),
        (
            ("path: out", "format: parqet"),
            "9: warning: the sink archive has the format 'parqet': did you mean parquet?",
        ),
        (
            ("path: out", "path: out, output: complete"),
            "9: the sink archive writes files, which only grow: output is append, not complete",
        ),
        (
            ("path: out", "topic: answers, options: {writeTimeut: 1s}"),
            "9: the sink archive: there is no option 'writeTimeut': did you mean writeTimeout?",
        ),
        (
            ("path: out", "path: out, trigger: soon"),
            "9: trigger: 'soon' is no trigger; 10 seconds is one, and available-now",
        ),
        (
            ("path: out", "path: out, output: apend"),
            "9: output is one of append, update, complete, not 'apend': did you mean append?",
        ),
        (
            ("path: out", "format: console, partition_by: day"),
            "9: the sink archive: partition_by is for files, not for console",
        ),
        (
            ("topic: orders", "topic: orders, options: {startingOfsets: earliest}"),
            "4: the source orders: there is no option 'startingOfsets': did you mean startingOffsets?",
        ),
        (
            ("topic: orders", "topic: orders, options: {subscribe: b}"),
            "4: the source orders says subscribe twice: once in options",
        ),
        (
            ("{topic: orders}", "{path: in, format: json}"),
            "4: the source orders is a stream of files and needs schema: id long, name string; or batch: true",
        ),
        (
            ("{topic: orders}", "{path: in, batch: true}"),
            "9: the sink archive gets rows of tables alone (batch: true), and a pipeline goes on: one must be a stream",
        ),
        (("{topic: orders}", "{topic: orders, batch: perhaps}"), "4: batch is true or false, not 'perhaps'"),
        (("{topic: orders}", "orders"), "4: the source orders is keys and values ("),
        (
            (QUERY, "from: orders"),
            "6: the step paid is one of sql, python, state, dedup and join, and says none",
        ),
        ((QUERY, "python: steps.py"), "7: python: 'steps.py' is no place in a file; steps.py:clean is one"),
        ((QUERY, "{python: 'steps.py:clean', from: orders}"), "6: the step paid: "),
        (
            (QUERY, "{state: 'steps.py:Count', from: orders}"),
            "6: the step paid needs key, as in key: customer",
        ),
        (("name: shop", "name: ../shop"), "1: name: '../shop' is no name: letters, digits, '_', '-' and '.'"),
        (
            ("      paid:", "      pa-id:"),
            "6: 'pa-id' is no name for one of steps: letters, digits and '_', no digit first",
        ),
        (
            ("      paid:", "      orders:"),
            "6: orders is there twice: names of sources and steps are names of tables",
        ),
        (
            ("name: shop", "name: ${NOT_SET_AT_ALL}"),
            "1: the variable NOT_SET_AT_ALL is not set; ${NOT_SET_AT_ALL:-otherwise} needs not be",
        ),
        (("name: shop", "name: shop\n    name: shop"), "2: the key 'name' is there already, in line 1"),
        (("name: shop", "name: [shop"), ": this is not YAML: "),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    assert change[0] in SOUND
    found = problems(tmp_path, SOUND.replace(*change))
    assert any(told in one for one in found), found


def test_all_errors_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        SOUND.replace("FROM orders", "FROM ordres")
        .replace("path: out", "pth: out")
        .replace("name:", "nme:", 1)
    )
    lines = [int(one.split(":")[0]) for one in problems(tmp_path, text)]
    assert len(lines) >= 3
    assert lines == sorted(lines)


def test_a_table_in_a_longer_query_has_its_own_line(tmp_path: Path) -> None:
    text = SOUND.replace(QUERY, "sql: |\n          SELECT *\n          FROM nowhere")
    assert any(one.startswith("9: the step paid reads nowhere") for one in problems(tmp_path, text))


def test_steps_that_read_each_other_are_told_with_their_circle(tmp_path: Path) -> None:
    text = SOUND.replace("FROM orders", "FROM orders JOIN big").replace(
        "    sinks:", "      big:\n        sql: SELECT * FROM paid\n    sinks:"
    )
    (told,) = [one for one in problems(tmp_path, text) if "circle" in one]
    assert told.endswith(("paid reads big reads paid", "big reads paid reads big"))


def test_two_sinks_cannot_write_to_one_path(tmp_path: Path) -> None:
    text = SOUND + "      second: {from: orders, path: ./out}\n"
    assert any("write to one path" in one for one in problems(tmp_path, text))


def test_what_no_sink_gets_is_a_warning(tmp_path: Path) -> None:
    text = SOUND.replace("    sinks:", "      lost:\n        sql: SELECT 1 FROM orders\n    sinks:")
    assert problems(tmp_path, text) == ["8: warning: no sink gets rows of the step lost"]


def test_a_topic_that_is_a_table_is_read_once_and_that_is_told_unless_it_is_meant(tmp_path: Path) -> None:
    table = "\n      names: {topic: names, batch: true, options: {OPTION}}"
    text = SOUND.replace("{topic: orders}", "{topic: orders}" + table).replace(
        QUERY, "sql: SELECT * FROM orders JOIN names"
    )
    (told,) = problems(tmp_path, text.replace("OPTION", ""))
    assert told.startswith("5: warning: the source names is read once in a run (batch: true)")
    assert problems(tmp_path, text.replace("OPTION", "endingOffsets: latest")) == []
    assert problems(tmp_path, "    trigger: available-now\n" + text.replace("OPTION", "")) == []
    (told,) = problems(tmp_path, text.replace("OPTION", "endingOffsets: latest, pushFilters: true"))
    assert told.startswith("5: the source names: pushFilters is for a frame that is used once")
    assert problems(tmp_path, text.replace("OPTION", "endingOffsets: latest, pushFilters: false")) == []


@pytest.mark.parametrize(
    ("pipeline", "sink", "goes_on"),
    [
        ("1 second", "", True),
        ("1 second", ", trigger: available-now", False),
        ("available-now", "", False),
        ("available-now", ", trigger: 1 minute", True),
    ],
)
def test_a_table_of_a_run_that_goes_on_is_told_whoever_says_that_it_does(
    tmp_path: Path, pipeline: str, sink: str, goes_on: bool
) -> None:
    text = SOUND.replace(
        "{topic: orders}", "{topic: orders}\n      names: {topic: names, batch: true}"
    ).replace(QUERY, "sql: SELECT * FROM orders JOIN names")
    text = f"    trigger: {pipeline}\n" + text.replace("path: out", f"path: out{sink}")
    assert [one[:42] for one in problems(tmp_path, text)] == [
        "6: warning: the source names is read once "
    ] * goes_on
    held = "JOIN names\n        expect: {good: {condition: flag > 0, action: quarantine}}"
    text = text.replace("JOIN names", held) + "    quarantine: {path: bad}\n"
    assert len(problems(tmp_path, text)) == (goes_on or pipeline == "1 second")


def test_a_quarantine_must_be_somewhere(tmp_path: Path) -> None:
    wanted = SOUND.replace(
        "    sinks:",
        "        expect: {good: {condition: tags IS NOT NULL, action: quarantine}, other: flag > 0}\n    sinks:",
    )
    (told,) = problems(tmp_path, wanted)
    assert told.startswith("8: the expectation good sends rows to a quarantine, and there is none")
    assert problems(tmp_path, wanted + "    quarantine: {path: bad}\n") == []
    assert problems(tmp_path, wanted + "    quarantine: {topic: bad}\n") == []
    assert "needs topic or path" in problems(tmp_path, wanted + "    quarantine: {format: rocketmq}\n")[0]
    assert "warning: no expectation" in problems(tmp_path, SOUND + "    quarantine: {path: bad}\n")[0]


def test_code_of_steps_is_looked_for_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("raise SystemExit('never run')\ndef clean(frame): ...\n")
    text = SOUND.replace(QUERY, "python: steps.py:CODE\n        from: orders")
    assert problems(tmp_path, text.replace("CODE", "clean")) == []
    assert problems(tmp_path, text.replace("CODE", "clear"))[0].endswith(
        "has no function clear: did you mean clean?"
    )
    (tmp_path / "steps.py").write_text("def clean(:")
    assert "line 1 is not Python" in problems(tmp_path, text.replace("CODE", "clean"))[0]


def test_a_step_with_state_and_its_sink_have_one_output_mode(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("class Count: ...\n")
    text = SOUND.replace(
        QUERY,
        "{state: 'steps.py:Count', from: orders, key: tags, schema: tags string, output: update}",
    ).replace("path: out", "format: console")
    (told,) = problems(tmp_path, text)
    assert "they must be the same" in told
    assert problems(tmp_path, text.replace("format: console", "format: console, output: update")) == []


def test_a_small_file_cannot_become_a_large_tree(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    (told,) = problems(tmp_path, "\n".join(levels))
    assert "more than 50000 keys and values" in told
    assert "nests too deeply" in problems(tmp_path, "[" * 100_000)[0]
    assert "nests too deeply" in problems(tmp_path, "a: &a [*a]")[0]
    assert "larger than" in problems(tmp_path, "x" * 2_000_000)[0]


@pytest.mark.parametrize(
    "text", ["", "just words", "- a\n- b", "\t", "a: {b", "\x00", "name: !!python/object:os.system x"]
)
def test_what_is_no_pipeline_is_told_and_no_error_of_ours(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text)


def test_a_delta_table_is_a_folder_that_grows_and_takes_no_options_of_others(tmp_path: Path) -> None:
    sink = (
        "{from: paid, format: delta, path: 's3://lake/t', output: complete, options: {mergeSchema: 'true'}}"
    )
    assert problems(tmp_path, SOUND.replace("{from: paid, path: out}", sink)) == [
        "9: the sink archive writes files, which only grow: output is append, not complete",
        "9: the sink archive: a Delta table is a folder that this machine and Spark's workers see under the same path",
        "9: the sink archive: a Delta table takes no options but path, and not mergeSchema",
    ]
    one_slash = "{from: paid, format: delta, path: 'file:/lake/t'}"
    (told,) = problems(tmp_path, SOUND.replace("{from: paid, path: out}", one_slash))
    assert "a Delta table is a folder" in told
    sound = "{from: paid, format: delta, path: table, partition_by: [tags]}"
    assert problems(tmp_path, SOUND.replace("{from: paid, path: out}", sound)) == []
