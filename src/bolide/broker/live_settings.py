"""LiveSettings: what a broker runs with now.  A few settings change while it runs; the others stay as they were."""

import logging
from collections.abc import Callable, Mapping

from bolide.broker.config import BrokerConfig
from bolide.model.clock import Clock
from bolide.model.data_version import DataVersion

log = logging.getLogger(__name__)


class LiveSettings:
    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self.now = config
        self.version = DataVersion(timestamp_ms=clock.now_ms())
        self._clock = clock
        self._listeners: list[Callable[[], None]] = []

    def change(self, settings: Mapping[str, str]) -> None:
        """All of them, or none: `ConfigError` says which one cannot be.  What is so already changes nothing."""
        changed = self.now.changed(settings)
        if changed == self.now:
            return
        self.now = changed
        self.version = self.version.next(self._clock.now_ms())
        for listener in self._listeners:
            try:
                listener()
            except Exception:  # the settings have changed all the same
                log.exception("somebody was not told that settings have changed")

    def on_change(self, listener: Callable[[], None]) -> None:
        """Be called after every change."""
        self._listeners.append(listener)
