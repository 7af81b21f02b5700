"""Tls: how a caller makes its connections secret, and what to do when that fails.

Servers are asked for a certificate that a known authority has signed and that names the address they are called at.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from bolide.model.errors import ConfigError, TlsFailed

_UNKNOWN_AUTHORITY = (18, 19, 20, 21)
"""X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT and those that follow it: nobody who is trusted has signed it."""

_NAMES_ANOTHER = (62, 63, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_EMAIL_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH"""


@dataclass(frozen=True)
class Tls:
    """How connections to name servers and brokers are encrypted.

    Example::

        Producer("mq.example.com:9876", tls=Tls(ca_file="ca.pem"))

    Args:
        ca_file: certificates (PEM) of the authorities that are trusted; without one, those that the machine trusts.
        cert_file: the client's own certificate (PEM), for servers that demand one.
        key_file: the key of that certificate, if it is not in the same file.
        verify: False takes any certificate, from anybody: whoever is on the way can read and change everything.
        check_names: False takes a certificate of a trusted authority whatever address it was made for.  Brokers are
            called at the addresses that they register, mostly numbers, and certificates often do not name these.
    """

    ca_file: str | Path | None = None
    cert_file: str | Path | None = None
    key_file: str | Path | None = None
    verify: bool = True
    check_names: bool = True

    def context(self) -> ssl.SSLContext:
        """What the event loop needs; `ConfigError` for files that cannot be used."""
        for name in ("verify", "check_names"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} of Tls is True or False, not {getattr(self, name)!r}")
        if self.key_file is not None and self.cert_file is None:
            raise ConfigError("key_file is the key of a certificate: give that too, as cert_file")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify and self.check_names
        if not self.verify:
            context.verify_mode = ssl.CERT_NONE
        self._load_authorities(context)
        if self.cert_file is not None:
            try:
                context.load_cert_chain(self.cert_file, self.key_file)
            except (OSError, TypeError, ValueError) as error:
                raise ConfigError(
                    f"the certificate of the client cannot be loaded (cert_file {str(self.cert_file)!r}): {error}"
                ) from error
        return context

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        if self.ca_file is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
            return
        try:
            context.load_verify_locations(cafile=self.ca_file)
        except (OSError, TypeError, ValueError) as error:
            raise ConfigError(
                f"ca_file {str(self.ca_file)!r} holds no certificates that can be loaded: {error}"
            ) from error


def failure(address: str, error: OSError) -> TlsFailed:
    """Why there is no TLS with this address, and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"the certificate of {address} is not trusted: {error.verify_message}"
        if error.verify_code in _NAMES_ANOTHER:
            return TlsFailed(
                f"{why} It was made for another address: let one be made that names this address"
                " (subjectAltName), or give tls=Tls(..., check_names=False)"
            )
        if error.verify_code in _UNKNOWN_AUTHORITY:
            return TlsFailed(
                f"{why}. Give the certificate of the authority that signed it, as tls=Tls(ca_file=...)"
            )
        return TlsFailed(f"{why}. The server needs another certificate")
    if isinstance(error, ssl.SSLError) and error.reason and "ALERT" in error.reason:
        return TlsFailed(
            f"{address} has refused the connection ({error.reason}): it may demand a certificate of the client,"
            " given as tls=Tls(cert_file=..., key_file=...)"
        )
    return TlsFailed(
        f"{address} does not speak TLS ({str(error) or type(error).__name__}): let the server offer it"
        " (tls.server.mode=permissive or enforcing), or leave tls out"
    )
