"""Topics or groups that one request makes: all are judged before the first one is made, both a few per turn.

Others change the tables in between.  What was judged depends on nothing there but the topic or group itself, as it was
before: whoever finds it otherwise when its turn comes judges again.  Whether there is room for it the table says.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from bolide.model.errors import InvalidRequest, TableFull, TooBusy
from bolide.model.steps import Steps
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.net.turns import next_turn

PER_TURN = 64

C = TypeVar("C", TopicConfig, GroupConfig)

Judge = Callable[[C, C | None], C]
"""Called with what was sent and what is known of that name.  What is to be known from then on, or `InvalidRequest`."""

Find = Callable[[str], C | None]


class Judged(NamedTuple, Generic[C]):
    sent: C
    known: C | None
    altered: C


def judging(sent: Iterable[C], judge: Judge[C], find: Find[C]) -> Steps[list[Judged[C]]]:
    """Nothing is changed yet; one that comes twice goes on from what it is to be after the first time."""
    judged: dict[str, C] = {}
    all_: list[Judged[C]] = []
    for number, config in enumerate(sent, 1):
        known = judged.get(config.name) or find(config.name)
        altered = judged[config.name] = judge(config, known)
        all_.append(Judged(config, known, altered))
        if number % PER_TURN == 0:
            yield
    return all_


async def put_each(
    configs: Sequence[Judged[C]], judge: Judge[C], find: Find[C], put: Callable[[C], None]
) -> None:
    """Others make some in between, so that the table may be full before all are there, and change or delete some, so
    that a change fits no more: then it is said how many are made."""
    for number, (sent, known, altered) in enumerate(configs):
        if number and number % PER_TURN == 0:
            await next_turn()
        try:
            now = find(sent.name)
            put(altered if now == known else judge(sent, now))
        except (InvalidRequest, TableFull, TooBusy) as error:
            raise type(error)(
                f"{error}; the first {number} of {len(configs)} are made: send the others again"
            ) from None
