"""Timed messages into the timer's index, many at once.  Chooses compiled code or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.store.timer._filing"):
    from bolide.store.timer.filing_twin import file_plain
else:
    from bolide.store.timer._filing import file_plain

__all__ = ["file_plain"]
