"""Credentials: who a client says it is, and with what it proves it."""

from dataclasses import dataclass, field

from bolide.model.errors import ConfigError
from bolide.model.printable import is_text


@dataclass(frozen=True)
class Credentials:
    """An access key and its secret, for clusters that demand them.

    Example::

        Producer("127.0.0.1:9876", credentials=Credentials("orders-app", secret_key))

    The secret signs every request and never travels itself.  Neither it nor the token shows in a `repr` or in a log.

    Args:
        access_key: the name of the account.
        secret_key: its secret.
        security_token: what a service for short-lived accounts gave along with the two.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("access_key", "secret_key"):
            value: object = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ConfigError(f"{name} is a text that is not empty, and not a {type(value).__name__}")
        if self.security_token is not None and not isinstance(self.security_token, str):
            raise ConfigError(f"security_token is a text, not a {type(self.security_token).__name__}")
        for name in ("access_key", "secret_key", "security_token"):
            if not is_text(getattr(self, name) or ""):
                raise ConfigError(f"{name} has surrogates in it, which are no text")
