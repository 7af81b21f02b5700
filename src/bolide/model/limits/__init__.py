"""Limits: how much of everything is taken, kept or made to wait.  One table, from which docs/limits.md is written.

Every number that keeps somebody else's input from costing without bound stands in one of these files, with what it
bounds and what happens beyond it.  No setting moves a limit; some settings go up to one.  A limit is an `int`, so that
code compares with it.  `make fix` writes the page again.
"""

from bolide.model.limit import Limit
from bolide.model.limits.broker import *
from bolide.model.limits.clients import *
from bolide.model.limits.connections import *
from bolide.model.limits.files import *
from bolide.model.limits.nameserver import *
from bolide.model.limits.spark import *


def table() -> dict[str, Limit]:
    """Every limit by its name."""
    return {name: value for name, value in globals().items() if isinstance(value, Limit)}
