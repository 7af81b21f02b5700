"""`--grep`: messages by a regular expression on their body, with what matched in colour on a terminal.

What strangers have written steers no terminal, so what is shown is tamed first; the colour comes afterwards, in the
place of marks that nobody can have guessed.
"""

import re
import secrets

from bolide.cli.layout import shown_body
from bolide.model.errors import ConfigError
from bolide.record.stored import StoredMessage

COLOUR, PLAIN = b"\x1b[1;31m", b"\x1b[0m"


class Grep:
    def __init__(self, pattern: str) -> None:
        try:
            self._pattern = re.compile(pattern.encode("utf-8", "surrogateescape"))
        except re.error as error:
            raise ConfigError(f"--grep {pattern[:64]!r} is no regular expression: {error}") from None
        mark = secrets.token_hex(8).encode()
        self._begin, self._end = b"<" + mark + b">", b"</" + mark + b">"

    def wants(self, message: StoredMessage) -> bool:
        return self._pattern.search(message.body) is not None

    def marked_body(self, message: StoredMessage) -> bytes:
        """The body with marks around what matched."""
        return self._pattern.sub(
            lambda found: self._begin + found[0] + self._end if found[0] else b"", shown_body(message)
        )

    def coloured(self, text: bytes) -> bytes:
        return text.replace(self._begin, COLOUR).replace(self._end, PLAIN)
