"""What servers write to their log: one line per event on stderr, tracebacks below it.

Names, remarks and errors of strangers are in these lines.  None of them steers the terminal that shows the log, and
none looks like a line of its own.
"""

import copy
import logging
import sys

from bolide.model.printable import printable, printable_lines

FORMAT = "%(asctime)s %(levelname)s %(message)s"


class PrintableLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        shown = copy.copy(record)  # others may format it, too
        shown.msg, shown.args = printable(record.getMessage()), ()
        return printable_lines(super().format(shown))


def set_up_logging(verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableLines(FORMAT))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
