"""The name server's own settings: codes 318 and 319.  Changes last until it stops."""

import logging

from bolide.model.errors import ConfigError, InvalidRequest, PermissionDenied, RequestError
from bolide.model.settings_table import FixedSetting
from bolide.nameserver.state import NameServerState
from bolide.net.link import Link
from bolide.wire.bodies.properties import format_settings, parse_settings
from bolide.wire.command import Command

log = logging.getLogger(__name__)


def update(state: NameServerState, link: Link, request: Command) -> Command:
    settings = parse_settings(request.body)
    if not settings:
        raise InvalidRequest("the request names no setting")
    try:
        state.config = state.config.changed(settings)
    except FixedSetting as error:
        raise PermissionDenied(str(error)) from error
    except ConfigError as error:
        raise RequestError(str(error)) from error
    text = "%s has changed %.1024s"
    state.provoked.say(log, logging.INFO, link.remote, text, link.remote, ", ".join(settings))
    return request.answer()


def show(state: NameServerState, link: Link, request: Command) -> Command:
    return request.answer(body=format_settings(state.config.as_settings()))
