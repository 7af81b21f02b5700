"""Folders that must still be there after power loss.

A new folder is a name in the folder above it, and lasts only once that one is synced.  Whoever keeps something in a
folder makes it here, at every start: it may have been made by a process that was killed before its sync.
"""

import os

from bolide.store.disk import Disk


def make_root(disk: Disk, path: str) -> None:
    """The folder that a whole store lives in, durable when this returns, with all folders above it."""
    path = os.path.abspath(path)
    disk.make_dirs(path)
    above = [path]
    while os.path.dirname(above[-1]) != above[-1]:
        above.append(os.path.dirname(above[-1]))
    for folder in reversed(above[1:]):
        try:
            disk.sync_dir(folder)
        except PermissionError:
            continue  # what we may not even look at was made by somebody else


def make_folder(disk: Disk, path: str) -> None:
    """A folder in one that lasts, durable when this returns, and so are those between them that had to be made."""
    path = os.path.abspath(path)  # so that the way up ends
    synced = [os.path.dirname(path)]
    while not disk.exists(synced[-1]):
        synced.append(os.path.dirname(synced[-1]))
    disk.make_dirs(path)
    for folder in reversed(synced):
        disk.sync_dir(folder)
