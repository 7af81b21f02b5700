"""Certificates for tests, made by openssl: an authority of our own, and what it signs."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.peers import built

DAYS = "30"


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, both PEM; the key as PKCS 8, which the original wants."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates.  `ca` is what its clients trust."""

    def __init__(self, home: Path) -> None:
        self._home = home
        home.mkdir(parents=True, exist_ok=True)
        self.ca = self._key_and("ca", "-x509", "-days", DAYS, "-out", home / "ca.pem").cert

    def certificate(self, name: str, *addresses: str) -> Certificate:
        """One for these addresses, each `IP:127.0.0.1` or `DNS:example.com`."""
        made = self._key_and(name, "-out", self._home / f"{name}.csr")
        extensions = self._home / f"{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(addresses)}\n" if addresses else "")
        self._openssl(
            *("x509", "-req", "-in", self._home / f"{name}.csr", "-CA", self.ca, "-CAcreateserial"),
            *("-CAkey", self._home / "ca.key", "-days", DAYS, "-extfile", extensions, "-out", made.cert),
        )
        return made

    def _key_and(self, name: str, *words: str | Path) -> Certificate:
        made = Certificate(self._home / f"{name}.pem", self._home / f"{name}.key")
        self._openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", made.key),
            *("-subj", f"/CN={name}", *words),
        )
        return made

    @staticmethod
    def _openssl(*words: str | Path) -> None:
        subprocess.run([built.tool("openssl"), *map(str, words)], check=True, capture_output=True, timeout=60)
