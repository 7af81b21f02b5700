"""The number by which a client or broker says its version, as people write it."""

_FIRST = {4: 213, 5: 413}
"""Of V4_0_0 and V5_0_0 (RocketMQ: MQVersion).  Ten minor versions each, with ten patches each, and a snapshot before
every one of them."""

_PATCHES, _WITH_SNAPSHOT = 10, 2


def version_name(number: int) -> str:
    """
    >>> version_name(407), version_name(493), version_name(492), version_name(7)
    ('4.9.7', '5.4.0', '5.4.0-SNAPSHOT', '(7)')
    """
    for major, first in sorted(_FIRST.items(), reverse=True):
        place, is_snapshot = divmod(number - first + 1, _WITH_SNAPSHOT)
        minor, patch = divmod(place, _PATCHES)
        if number >= first - 1 and minor < _PATCHES:
            return f"{major}.{minor}.{patch}{'' if is_snapshot else '-SNAPSHOT'}"
    return f"({number})"
