"""Replays: messages of a topic or an archive, once more into a topic.

`plan.py` is what a replay is, fixed before its first message; `folder.py` keeps it and how far it has come.
`selection.py` says which messages are meant, `source.py` reads them, `outgoing.py` makes the messages that are sent,
`summary.py` looks without sending, and `run.py` sends slice by slice.
"""
