"""pyarrow, which is not there unless somebody wants it."""

import importlib

from bolide.model.errors import RequirementMissing


def check_pyarrow(what: str) -> None:
    """`RequirementMissing` if it cannot be imported; `what` needs it."""
    try:
        importlib.import_module("pyarrow.compute")
    except ImportError as error:
        raise RequirementMissing(
            f"{what} needs pyarrow, which cannot be imported ({error}): `pip install 'bolide[arrow]'` brings it"
        ) from error
