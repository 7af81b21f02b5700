"""As whom topics of a pipeline are read and written, where the file leaves that to whoever runs it.

What a source or sink says itself counts: its account, and apart from that its TLS.  Nothing of it is written down.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from bolide.client.terms import Access
from bolide.pipeline.access import ACCOUNT_OPTIONS, TLS_OPTIONS, access_options
from bolide.pipeline.declared.definition import TOPIC_FORMAT, Definition, Quarantine, Sink, Source

P = TypeVar("P", Source, Sink, Quarantine)


def with_access(definition: Definition, access: Access) -> Definition:
    """The same, with what is left open filled in."""
    said = access_options(access)
    if not said:
        return definition

    def let_in(part: P) -> P:
        return replace(part, options=_filled(part.options, said)) if part.format == TOPIC_FORMAT else part

    return replace(
        definition,
        sources={name: let_in(source) for name, source in definition.sources.items()},
        sinks={name: let_in(sink) for name, sink in definition.sinks.items()},
        quarantine=definition.quarantine and let_in(definition.quarantine),
    )


def _filled(options: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
    own = {name.lower() for name in options}
    filled = dict(options)
    for names in (ACCOUNT_OPTIONS, TLS_OPTIONS):
        if own.isdisjoint(name.lower() for name in names):
            filled |= {name: said[name] for name in names if name in said}
    return filled
