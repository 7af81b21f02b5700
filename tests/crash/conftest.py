"""Tells after a run which crash states it has seen, so that any of them can be seen again."""

import pytest

TOLD = "crash states"
"""The property of a test that is told."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == TOLD:
                terminalreporter.write_line(str(value))
