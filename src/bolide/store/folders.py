"""Folders that must still be there after power loss.

A new folder is a name in the folder above it, and lasts only once that one is synced.  Whoever keeps something in a
folder makes it here, at every start: it may have been made by a process that was killed before its sync.
"""

import os

from bolide.store.disk import Disk


def make_folder(disk: Disk, path: str) -> None:
    """The folder, durable when this returns, and so are those above it that had to be made."""
    path = os.path.abspath(path)  # so that the way up ends
    synced = [os.path.dirname(path)]
    while not disk.exists(synced[-1]):
        synced.append(os.path.dirname(synced[-1]))
    disk.make_dirs(path)
    for folder in reversed(synced):
        disk.sync_dir(folder)
