"""Records as Arrow columns and back, for who works with tables: pipelines of Spark, `send_arrow` and `poll_arrow`.

Records become columns in compiled code (`columns.py`), which `batches.py` puts together; rows to send are cut by topic
(`row_columns.py`) and become requests in compiled code (`rows.py`, `frames.py`).  Which columns there are is said in
`batches.py` for what is read and in `names.py` for what is written.

pyarrow is needed by `batches.py` and `row_columns.py` alone, and nobody gets it who does not ask for it
(`requirement.py`).
"""
