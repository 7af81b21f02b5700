"""The `bolide` command.  `app.py` lists the commands, `main.py` runs one; each noun or verb has a file of its own.

Files that declare commands import little at the top and the rest inside the command, so that `bolide --help` and shell
completion answer at once.  Administration goes through `bolide.admin` and nothing deeper.
"""
