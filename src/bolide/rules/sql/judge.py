"""Asks an expression about a record.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.rules.sql._judge"):
    from bolide.rules.sql.judge_twin import Judge
else:
    from bolide.rules.sql._judge import Judge

__all__ = ["Judge"]
