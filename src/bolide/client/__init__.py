"""The clients: producer, push consumer and pull consumer, on asyncio.  `blocking.py` is their blocking shell.

Start with `producer.py` or `push.py`.  Underneath, `instance.py` holds what every client has (connections,
heartbeats, routes), and `queue_calls.py` what can be asked about one queue.
"""
