"""Topics kept as files, every message once, and the proof of it.

An archive is a folder (`place.py`) whose manifest (`manifest.py`) says what is in it; whoever reads one believes the
manifest alone (`read.py`).  `run.py` is the stream that fills it, `write.py` commits a batch (`files.py`, `measure.py`,
`delta.py`), `compact.py` makes few files of many.  `audit.py` holds an archive against brokers and groups: by offsets
(`compare.py`, `spans.py`) and by what the files hold (`proof.py`).
"""
