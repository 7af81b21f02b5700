"""Whose offsets are nobody's to move: those of the broker's own group, which say how far transactions are settled.

Everybody asks here who stores offsets for a client, whatever request brings them.
"""

from bolide.model import names
from bolide.model.errors import PermissionDenied


def check_offsets_change(group: str) -> None:
    """`PermissionDenied` for a group whose offsets nobody may change, by whatever request."""
    if group == names.TRANSACTIONS_GROUP:
        raise PermissionDenied(f"the offsets of {group} are the broker's own: half messages would be lost")
