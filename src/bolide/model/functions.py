"""What can be told of a function of the application before it is called."""

import inspect


def is_coroutine_function(value: object) -> bool:
    """Whether a call of it gives something to await: it was written with `async def`, or its `__call__` was."""
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__)
