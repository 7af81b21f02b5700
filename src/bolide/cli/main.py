"""The first moment of the command `bolide`: nothing is imported before Ctrl-C is heard as such, not even `typing`."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130


def main(words: "Sequence[str] | None" = None) -> int:
    """Run one command line; returns the exit code."""
    try:
        from bolide.cli.run import run

        return run(words)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
