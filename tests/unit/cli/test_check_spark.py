"""What `bolide doctor` says of Spark: what is there, and never that something must be."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from bolide.cli import checks_here
from tests.unit.cli.conftest import Command


def jdk(folder: Path, release: str | None) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    if release is not None:
        (folder / "release").write_text(release)
    return folder


@pytest.mark.parametrize(
    ("release", "verdict", "told"),
    [
        ('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.1"\n', "ok", "Java 21.0.1"),
        ('JAVA_VERSION="1.8.0_292"\n', "warning", "is Java 1.8.0_292"),
        (None, "ok", "of a version that it does not tell"),
    ],
)
def test_the_java_of_java_home_is_told_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str | None, verdict: str, told: str
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "jdk", release)))
    found = checks_here.check_spark()
    assert (found.check, found.verdict.value) == ("pipelines", verdict)
    assert told in found.text


def test_neither_java_nor_pyspark_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    if find_spec("pyspark") is not None:
        assert "no Java" in checks_here.check_spark().text
    monkeypatch.setattr(checks_here, "find_spec", lambda name: None)
    found = checks_here.check_spark()
    assert found.verdict.value == "ok"
    assert "no PySpark" in found.text


def test_the_doctor_tells_of_pipelines(command: Command, tmp_path: Path) -> None:
    found = command("doctor", "--json", "--data", str(tmp_path)).json
    assert "pipelines" in [finding["check"] for finding in found["findings"]]
