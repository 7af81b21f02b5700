"""What servers write to their log: one line per event on stderr, tracebacks below it.

Names, remarks and errors of strangers are in these lines.  None of them steers the terminal that shows the log, and none
looks like a line of its own.
"""

import logging
import sys
from typing import Any

from bolide.model.printable import printable, printable_lines

FORMAT = "%(asctime)s %(levelname)s %(message)s"


class PrintableLines(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return printable_lines(super().formatException(ei))


def set_up_logging(verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableLines(FORMAT))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
