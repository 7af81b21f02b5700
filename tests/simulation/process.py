"""Process: what runs on a host from a start to an end.

All code of a process runs in its context, which every task, timer and callback that it makes inherits.  So the loop
knows whose work a callback is, and a dead process does nothing any more: no clean-up, no last word.
"""

import contextvars

_current: contextvars.ContextVar["Process | None"] = contextvars.ContextVar("process", default=None)


class Process:
    """`host` is the address it runs at."""

    def __init__(self, name: str, host: str, pid: int) -> None:
        self.name = name
        self.host = host
        self.pid = pid
        self.is_alive = True
        self.context = contextvars.copy_context()
        self.context.run(_current.set, self)

    def __str__(self) -> str:
        return f"{self.name}/{self.pid}"


def current() -> Process | None:
    """Whose code this is; None for the world's own."""
    return _current.get()


def owner_of(context: contextvars.Context) -> Process | None:
    return context.get(_current)
