"""The blocking shell: the asyncio clients, run on one event loop in a thread of its own (`loop_thread.py`).

Nearly every method hands its coroutine to the loop and waits for the outcome, so both shells do the same thing in the
same way.  What the thread of the caller does itself, and why:

- `send` of a plain message, for speed (`direct.py`); what goes wrong there goes on through the loop.
- `send_soon` adds a message to those that are collected, and asks the loop only for the way to a queue, or for room.
- `send_many` and `send_arrow` take what the caller gives in pieces, for that may wait.
- `send_in_transaction` calls the application's function between two coroutines.
- a step of an iteration takes the next message, and asks the loop when there is none; a poll that an interrupt ends
  gives back what it took.
- `run` waits for a signal; and the end of a program sends what nobody has waited for (`exit.py`).
"""
