"""Topics or groups that one request makes: a few per turn of the loop."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from bolide.model.errors import TableFull
from bolide.net.turns import next_turn

PER_TURN = 64

T = TypeVar("T")


async def put_each(configs: Sequence[T], put: Callable[[T], None]) -> None:
    """Others make some in between, so that the table may be full before all are there: then it is said how many are."""
    for number, config in enumerate(configs):
        if number and number % PER_TURN == 0:
            await next_turn()
        try:
            put(config)
        except TableFull as error:
            raise TableFull(
                f"{error}; the first {number} of {len(configs)} are made: send the others again"
            ) from None
