"""Whether the inputs of a bolt are there and can be divided as asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from heron.api.definition import (
    ComponentDefinition,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
)
from heron.errors import TopologyError, known, nearest

__all__ = ["ENTRY", "KEYED", "verify_input"]

KEYED: Final = frozenset({GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY})
"""The groupings that go through key groups."""

ENTRY: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""``module:Name`` as importing code can reach it; a class inside a function has ``<locals>`` in its name."""


def verify_input(
    bolt: ComponentDefinition, subscription: InputDefinition, components: Mapping[str, ComponentDefinition]
) -> None:
    """Returns when the subscription names an existing component, stream and fields, and its grouping is complete.

    Raises:
        TopologyError: when it does not; lists what is there and names the nearest.
    """
    place = f"bolt {bolt.name!r}, input {subscription.component!r}:{subscription.stream!r}"
    source = components.get(subscription.component)
    if source is None:
        near = nearest(subscription.component, components)
        msg = f"{place}: there is no component {subscription.component!r}{near}; known: {known(components)}"
        raise TopologyError(msg)
    stream = source.output(subscription.stream)
    if stream is None:
        streams = [output.name for output in source.outputs]
        near = nearest(subscription.stream, streams)
        msg = f"{place}: component {source.name!r} has no stream {subscription.stream!r}{near}; known: {known(streams)}"
        raise TopologyError(msg)
    if sum((each.component, each.stream) == (source.name, stream.name) for each in bolt.inputs) > 1:
        msg = f"{place}: the stream is subscribed to twice; keep one of the two groupings"
        raise TopologyError(msg)
    _verify_grouping(place, subscription.grouping, stream)


def _verify_grouping(place: str, grouping: GroupingDefinition, stream: StreamDefinition) -> None:
    if grouping.kind in KEYED:
        _verify_key(place, grouping, stream)
    elif grouping.fields:
        msg = f"{place}: a {grouping.kind.value} grouping takes no fields, but has {known(grouping.fields)}; drop them"
        raise TopologyError(msg)
    entry = grouping.entry
    if grouping.kind is GroupingKind.CUSTOM:
        if entry is not None and not ENTRY.fullmatch(entry):
            msg = f"{place}: custom grouping {entry!r} is not of the form 'module:Class'"
            raise TopologyError(msg)
    elif entry is not None:
        msg = f"{place}: a {grouping.kind.value} grouping has no entry, but names {entry!r}; make it custom"
        raise TopologyError(msg)


def _verify_key(place: str, grouping: GroupingDefinition, stream: StreamDefinition) -> None:
    if not grouping.fields:
        msg = f"{place}: a {grouping.kind.value} grouping names no field; known: {known(stream.fields)}"
        raise TopologyError(msg)
    for name in grouping.fields:
        if name not in stream.fields:
            near = nearest(name, stream.fields)
            msg = f"{place}: the stream has no field {name!r}{near}; known: {known(stream.fields)}"
            raise TopologyError(msg)
    if len(set(grouping.fields)) < len(grouping.fields):
        msg = f"{place}: a field is named twice in {', '.join(grouping.fields)}; name each once"
        raise TopologyError(msg)
