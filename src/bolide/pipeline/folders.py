"""Paths as people give them: folders of this machine, or addresses of file systems that only Spark looks up.

An address has a scheme before its first slash (`s3a://bucket/x`).  Hadoop writes those without a host with one slash,
and so they come back from Spark: `file:/data/table`.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

CONFIGURED_BY = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")
"""Where one of these says something, there may be files that name another file system for paths without a scheme."""

DEFAULT_SYSTEM = "fs.defaultFS"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")


def scheme_of(text: str) -> str:
    """That of an address; a path has none, also where it has a colon.

    >>> scheme_of("file:/data"), scheme_of("s3a://bucket/x"), scheme_of("/data/a:b"), scheme_of("a:b")
    ('file', 's3a', '', '')
    """
    match = _SCHEME.match(text)
    return match[1].lower() if match else ""


def local_folder(text: str) -> Path | None:
    """The folder of this machine that is meant; None for an address of another file system.

    >>> local_folder("file:/data/a%20b"), local_folder("hdfs://host/data")
    (PosixPath('/data/a b'), None)
    """
    match scheme_of(text):
        case "":
            return Path(text).expanduser()
        case "file":
            return Path(unquote(urlsplit(text).path))
    return None


def whole(text: str, folder: Path | None = None) -> str:
    """A path from the root on, seen from a folder or from where the command is called; an address as it is.

    >>> whole("orders", Path("/data")), whole("file:/data/orders")
    ('/data/orders', 'file:/data/orders')
    """
    if scheme_of(text):
        return text
    return str(((folder or Path()) / Path(text).expanduser()).absolute())


def may_be_elsewhere(text: str, settings: Mapping[str, str]) -> bool:
    """Whether Spark may look up a path on another file system; `settings` are those of its session."""
    if scheme := scheme_of(text):
        return scheme != "file"
    return any(name.endswith(DEFAULT_SYSTEM) for name in settings) or any(
        os.environ.get(name) for name in CONFIGURED_BY
    )
