"""What every test folder shares: how a test says which tools it needs.

    pytestmark = pytest.mark.needs("java", "mvn")        # a whole file
    def test_x(require_tool): java = require_tool("java")  # the path of one tool

Where a tool is missing the test is skipped and the summary has one line per tool.  With `CI` set nothing is
skipped: there a skip of any kind, by these helpers or by hand, is a failure.

The programs of other languages are fetched and built before the first test runs: on a fresh machine that takes
minutes, which belong to no test's own time.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator

import hypothesis
import pytest

from tests import folders, shifted_clock
from tests.peers import built, go, java, node

# Machines are shared: how long an example takes says nothing.  (In CI hypothesis also fixes its seed by itself.)
hypothesis.settings.register_profile("shared-machine", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("shared-machine")

if "BOLIDE_TEST_CLOCK" in os.environ:
    shifted_clock.shift(os.environ["BOLIDE_TEST_CLOCK"])

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as a shell leaves it to what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

PEERS: dict[tuple[str, ...], Callable[[], object]] = {
    ("java", "mvn"): lambda: [java.build(version) for version in java.VERSIONS],
    ("go",): go.build,
    ("node", "npm"): node.build,
}
"""What is built when a test needs all of these tools."""

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(
        folders
    )  # hooks of this file itself are not called for a session's fixtures


def _require_tool(name: str) -> str:
    """The path of a command, or a skip (in CI: a failure) that names it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], str]:
    return _require_tool


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    wanted = {tool for item in session.items for marker in item.iter_markers("needs") for tool in marker.args}
    if session.config.option.collectonly:
        return
    for tools, build in PEERS.items():
        if wanted.issuperset(tools) and all(map(shutil.which, tools)):
            try:
                build()
            except (built.BuildFailed, subprocess.TimeoutExpired):
                pass  # the tests that need them say so


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for tool in marker.args:
            _require_tool(tool)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI, turn a skip into a failure with the same reason.  An expected failure is not a skip."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped in CI: {reason}"
