"""How the demo ends when it is stopped; what it does otherwise is shown by `tests/system/test_demo.py`."""

import runpy
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


def test_ctrl_c_ends_the_demo_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    demo = runpy.run_path(str(DEMO))
    monkeypatch.setattr("shutil.which", interrupt)
    assert demo["main"]() == 130
    assert capsys.readouterr().err == "\nstopped\n"
