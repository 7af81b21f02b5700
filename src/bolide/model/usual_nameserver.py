"""The name server of whoever does not say one: that of the environment, else the one that `bolide up` brings.

The command and the files of pipelines share it.  Clients in programs are always told theirs.
"""

import os

USUAL_NAMESERVER = "127.0.0.1:9876"
NAMESERVER_VARIABLES = ["BOLIDE_NAMESERVER", "NAMESRV_ADDR"]
"""Ours, then the one that the original and its tools read."""


def nameserver_variable() -> str:
    """The variable that counts: the first that is set, else ours."""
    return next(filter(os.environ.get, NAMESERVER_VARIABLES), NAMESERVER_VARIABLES[0])


def nameserver_of_environment() -> str:
    """Empty when nobody has set it."""
    return os.environ.get(nameserver_variable(), "")


def usual_nameserver() -> str:
    return nameserver_of_environment() or USUAL_NAMESERVER
