"""Settings: what the broker runs with, and the few that may change while it runs.

The original answers success to any key, also to one that nobody knows.  Here a change is made whole or refused with
the reason: an operator who mistypes `brokerPermision` before maintenance must hear of it.
"""

import logging
from collections.abc import Awaitable

import orjson

from bolide.broker.part import Part
from bolide.broker.state import BrokerState
from bolide.model.errors import ConfigError, InvalidRequest
from bolide.net.link import Link
from bolide.net.provoked import Provoked
from bolide.net.registry import Handler, bound
from bolide.wire.bodies.properties import format_settings, parse_settings
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

log = logging.getLogger(__name__)

PERMISSION_KEY = "brokerPermission"

TOLD_TOO = {
    "clientCallbackExecutorThreads": "1",
    "filterServerNums": "0",
    "useTLS": "false",
}
"""Settings of the original that admin tools stumble over when they are missing, with the value that is true here."""


def all_settings(state: BrokerState, link: Link, request: Command) -> Command:
    """26: as lines of `key=value`, under the original's names."""
    told = {**TOLD_TOO, **state.settings.now.as_settings()}
    version = orjson.dumps(state.settings.version.as_json()).decode()
    return request.answer(fields={"version": version}, body=format_settings(told))


async def _answer_when_registered(state: BrokerState, request: Command) -> Command:
    await state.membership.settled()
    return request.answer()


class Settings(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._provoked = Provoked(state.clock)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.UPDATE_BROKER_CONFIG: self.update,
            **bound(self._state, {RequestCode.GET_BROKER_CONFIG: all_settings}),
        }

    def update(self, link: Link, request: Command) -> Command | Awaitable[Command]:
        """25: change settings at run time.

        The broker's permission masks that of every topic in its registration, so a change of it gives the topic table a
        new version and is registered before the answer: producers leave a drained broker with their next look at the
        route.
        """
        state, settings = self._state, parse_settings(request.body)
        before = state.settings.now
        try:
            state.settings.change(settings)
        except ConfigError as error:
            raise InvalidRequest(str(error)) from None
        if state.settings.now != before:
            text, about = "%s has changed settings: %s", tuple(sorted(settings.items()))
            self._provoked.say(log, logging.INFO, link.remote, text, link.remote, settings, about=about)
        if PERMISSION_KEY not in settings:
            return request.answer()
        state.topics.touch()
        return _answer_when_registered(state, request)
