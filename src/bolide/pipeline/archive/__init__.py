"""Topics kept as files, every message once, and the proof of it.

An archive is a folder (`place.py`) whose manifest (`manifest.py`) says what is in it; whoever reads one believes the
manifest alone (`read.py`).
"""
