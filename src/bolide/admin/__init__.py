"""Administration: one function for each thing an operator does.  The command line calls these and nothing deeper.

Start with `connection.py` (whom we talk to), then `topics.py` and `cluster.py` (what can be asked and changed).
Nothing here prints, and nothing here keeps state between two calls.
"""
