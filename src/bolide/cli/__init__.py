"""The `bolide` command.  `app.py` lists the commands, `main.py` and `run.py` run one; each noun or verb has a file.

Files that declare commands import little at the top and the rest inside the command, so that `bolide --help` and shell
completion answer at once.  Administration goes through `bolide.admin` and nothing deeper.
"""
