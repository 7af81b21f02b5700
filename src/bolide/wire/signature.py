"""Signatures of requests: HmacSHA1 over what a request says, as the original's AclClientRPCHook makes them.

The content is the values of all fields but `Signature`, one behind the other in the order of their names, and then the
body.  Names and separators are not in it.
"""

import base64
import hmac

from bolide.model.credentials import Credentials
from bolide.wire.command import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, Command


def sign(request: Command, credentials: Credentials) -> None:
    """Add who asks, and the proof.  A request that was signed before is signed anew."""
    fields = request.fields
    fields[ACCESS_KEY] = credentials.access_key
    if credentials.security_token is not None:
        fields[SECURITY_TOKEN] = credentials.security_token
    fields[SIGNATURE] = signature(request, credentials.secret_key)


def signature(request: Command, secret_key: str) -> str:
    """What the field must hold."""
    fields = request.fields
    values = "".join(fields[name] for name in sorted(fields) if name != SIGNATURE)
    made = hmac.digest(secret_key.encode(), values.encode() + request.body, "sha1")
    return base64.b64encode(made).decode()
