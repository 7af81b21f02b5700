"""NotedFilters: SQL subscriptions are written down in `config/consumerFilter.json`, as the original keeps them.

A heartbeat says which there are.  A new expression is looked at before it is written, one in a turn of the loop: what
is none stays out of the file, as there.
"""

from collections.abc import Iterable, Iterator

from bolide.broker.state import BrokerState
from bolide.model.errors import RequestError
from bolide.model.topic import TAG, Subscription
from bolide.net.turns import Slices
from bolide.rules.filters import filter_of
from bolide.store.tables import FilterTable
from bolide.wire.bodies.group import ConsumerData

PERSIST_MS = 10_000
SWEPT_PER_TURN = 512


_OVER = object()


class NotedFilters:
    def __init__(self, state: BrokerState) -> None:
        self._clients = state.clients
        self._settings = state.settings
        self.table = state.files.open(FilterTable, "consumerFilter.json", PERSIST_MS)
        self._changed: dict[str, None] = {}  # groups, in the order in which they are looked at
        self._looked_at: dict[str, list[Subscription]] = {}  # what each group had last, if anything
        self._steps: Iterator[None] = iter(())
        self._looking: Iterator[None] = iter(())
        self._noting = Slices(self._note_some)

    def heard(self, consumers: Iterable[ConsumerData]) -> None:
        """These groups were in a heartbeat."""
        for consumer in consumers:
            if not self._is_noted(consumer.group):
                self._changed[consumer.group] = None
        self._noting.go()

    def sweep(self) -> None:
        """Now and then: groups that have gone, and filters that have been dead for long."""
        self._looking = self._look_for_gone()
        self._noting.go()
        self.table.forget_dead(self._settings.now.dead_filters_kept)

    def close(self) -> None:
        self._noting.close()

    def _is_noted(self, name: str) -> bool:
        return self._expressions(name) == self._looked_at.get(name, [])

    def _expressions(self, name: str) -> list[Subscription]:
        group = self._clients.group(name)
        if group is None:
            return []
        return [one for one in group.subscriptions.values() if one.expression_type != TAG and one.expression]

    def _note_some(self) -> bool:
        if next(self._steps, _OVER) is _OVER:
            if self._changed:
                self._steps = self._note(next(iter(self._changed)))
            else:
                return next(self._looking, _OVER) is not _OVER or bool(self._changed)
        return True

    def _look_for_gone(self) -> Iterator[None]:
        for count, group in enumerate(list(self._looked_at)):
            if self._clients.group(group) is None:
                self._changed[group] = None
            if count % SWEPT_PER_TURN == SWEPT_PER_TURN - 1:
                yield

    def _note(self, name: str) -> Iterator[None]:
        del self._changed[name]
        wanted, sound = self._expressions(name), []
        for one in wanted:
            if _is_sound(one):
                sound.append(one)
            yield
        self.table.subscribed(name, sound)
        self._looked_at.pop(name, None)
        if wanted:
            self._looked_at[name] = wanted


def _is_sound(subscription: Subscription) -> bool:
    try:
        filter_of(subscription)
    except RequestError:
        return False
    return True
