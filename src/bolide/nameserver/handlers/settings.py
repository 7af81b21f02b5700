"""The name server's own settings: codes 318 and 319.  Changes last until it stops."""

import logging

from bolide.model.errors import InvalidRequest
from bolide.nameserver.state import NameServerState
from bolide.net.link import Link
from bolide.wire.bodies.properties import format_settings, parse_settings
from bolide.wire.command import Command

log = logging.getLogger(__name__)


def update(state: NameServerState, link: Link, request: Command) -> Command:
    settings = parse_settings(request.body)
    if not settings:
        raise InvalidRequest("the request names no setting")
    state.config.change(settings)
    log.info("%s has changed %s", link.remote, ", ".join(settings))
    return request.answer()


def show(state: NameServerState, link: Link, request: Command) -> Command:
    return request.answer(body=format_settings(state.config.as_settings()))
