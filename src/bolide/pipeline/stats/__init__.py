"""The ready-made pipeline `stats`: traffic, sizes, latencies, hot keys, skewed queues and lag of topics.

`report.py` puts a report together: `sources.py` says what is read and knows the queues of a topic, `measure.py` is the
one pass of Spark over the messages, `lag.py` asks how far groups are and keeps the history of it.  What comes out are
the values of `figures.py`, which Spark has nothing to do with; `tables.py` gives them to programs, as JSON and as
Parquet, `page.py` to people, as one page of HTML with the charts of `charts.py`.
"""
