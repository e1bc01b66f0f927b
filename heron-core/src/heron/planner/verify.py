"""Checks the definition of a topology: names, streams, inputs, groupings, numbers, cycles.

The first problem in the order of declaration is raised, so the same definition always gives the same error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from heron.api.api_constants import (
    TOPOLOGY_COMPONENT_PARALLELISM,
    TOPOLOGY_KEY_GROUPS,
    TOPOLOGY_ON_ERROR,
    TOPOLOGY_RELIABILITY_MODE,
    TOPOLOGY_REPLAY_ATTEMPTS,
    TopologyReliabilityMode,
)
from heron.api.dead_letter import DEAD_LETTER_STREAM
from heron.api.definition import (
    COMPONENT_RUNTIME,
    DEAD_LETTERS,
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
    TopologyDefinition,
)
from heron.api.tuple import TupleHelper
from heron.author_text import short_text
from heron.errors import TopologyError, known, nearest
from heron.planner.key_group import key_groups_of
from heron.planner.logical_plan import find_cycle
from heron.planner.shed_check import check_shedding

__all__ = ["MAX_INSTANCES", "MAX_NAME_LENGTH", "verify"]

MAX_INSTANCES: Final = 10_000
"""Each stream manager has the whole plan. The number of links grows with the square of the number of containers."""

MAX_NAME_LENGTH: Final = 200
"""Names become parts of file and node names, which have at most 255 bytes."""

_RESERVED = frozenset({TupleHelper.TICK_SOURCE_COMPONENT, TupleHelper.TICK_TUPLE_ID})

_ROLES = frozenset({"executor", "metricsmgr", "stmgr", "tmanager"})

_MODES: Final = tuple(mode.value for mode in TopologyReliabilityMode)
_EFFECTIVELY_ONCE: Final = TopologyReliabilityMode.EFFECTIVELY_ONCE.value
_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

_KEYED: Final = frozenset({GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY})
"""The groupings that use key groups."""

_ENTRY: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""``module:Name`` as importing code can reach it; a class inside a function has ``<locals>`` in its name."""


def verify(definition: TopologyDefinition) -> None:
    """Checks that the topology can be planned and run.

    Raises:
        TopologyError: when it cannot; names the place, the value, the limit or the known names, and the remedy.
    """
    _check_name(definition.name, "topology name")
    _check_reliability(definition)
    _check_replays(definition)
    _check_dead_letters(definition)
    groups = key_groups_of(definition)
    _check_component_names(definition)
    components = {component.name: component for component in definition.components}
    for component in definition.components:
        _check_shape(component)
        _check_outputs(component)
        _check_parallelism(component, groups)
    for component in definition.components:
        for subscription in component.inputs:
            _verify_input(component, subscription, components)
    check_shedding(definition)
    _check_whole(definition)


def _check_name(name: str, place: str) -> None:
    if not name:
        _refuse(f"{place} is empty; use letters, digits, '_' and '-'")
    if not _NAME.fullmatch(name):
        odd = next(sign for sign in name if not _NAME.fullmatch(sign))
        reason = ", which separates the parts of paths and of metric names" if odd in "/\\." else ""
        _refuse(f"{place} {name!r} has {odd!r} in it{reason}; use letters, digits, '_' and '-'")
    if len(name) > MAX_NAME_LENGTH:
        _refuse(f"{place} {name[:40]!r}... has {len(name)} characters, the limit is {MAX_NAME_LENGTH}; shorten it")
    if name in _RESERVED:
        _refuse(f"{place} {name!r} is reserved for tick tuples; choose another")


def _check_reliability(definition: TopologyDefinition) -> None:
    mode = definition.config.get(TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode.ATMOST_ONCE.value)
    if mode not in _MODES:
        close = nearest(str(mode), _MODES)
        _refuse(
            f"topology {definition.name!r}: {TOPOLOGY_RELIABILITY_MODE} {mode!r} is unknown{close}; "
            f"known: {known(_MODES)}"
        )


def _check_replays(definition: TopologyDefinition) -> None:
    """Only at least once has roots that can be replayed; a bolt that waits for dead letters needs some."""
    mode = definition.config.get(TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode.ATMOST_ONCE.value)
    for spout in definition.components:
        if spout.kind is not ComponentKind.SPOUT:
            continue
        attempts = {**definition.config, **spout.config}.get(TOPOLOGY_REPLAY_ATTEMPTS)
        if attempts is not None and mode != TopologyReliabilityMode.ATLEAST_ONCE.value:
            _refuse(
                f"component {spout.name!r}: {TOPOLOGY_REPLAY_ATTEMPTS} is {attempts}, and nothing is replayed with "
                f"{TOPOLOGY_RELIABILITY_MODE} {mode}; set ATLEAST_ONCE, or remove the key"
                + (f" and set {TOPOLOGY_ON_ERROR}: dead_letter" if mode == _EFFECTIVELY_ONCE else "")
            )
        readers = [bolt.name for bolt, _ in definition.consumers(spout.name, DEAD_LETTERS)]
        if readers and attempts is None and spout.output(DEAD_LETTERS) == DEAD_LETTER_STREAM:
            _refuse(
                f"component {readers[0]!r}: its input {spout.name}:{DEAD_LETTERS} stays empty, because "
                f"{TOPOLOGY_REPLAY_ATTEMPTS} is not set; set it for the topology or for {spout.name!r}"
            )


def _check_dead_letters(definition: TopologyDefinition) -> None:
    """A bolt keeps the tuples that it failed with its checkpoints; at least once its spouts keep the roots."""
    mode = definition.config.get(TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode.ATMOST_ONCE.value)
    configs = (("the topology", definition.config), *((each.name, each.config) for each in definition.components))
    for place, config in configs:
        if config.get(TOPOLOGY_ON_ERROR) == "dead_letter" and mode != _EFFECTIVELY_ONCE:
            at_least = mode == TopologyReliabilityMode.ATLEAST_ONCE.value
            remedy = f"set {TOPOLOGY_REPLAY_ATTEMPTS} instead" if at_least else f"set {_EFFECTIVELY_ONCE}, or remove it"
            _refuse(
                f"{place}: {TOPOLOGY_ON_ERROR} is dead_letter, which needs the checkpoints of {_EFFECTIVELY_ONCE}, "
                f"and {TOPOLOGY_RELIABILITY_MODE} is {mode}; {remedy}"
            )


def _check_component_names(definition: TopologyDefinition) -> None:
    for component in definition.components:
        _check_name(component.name, "component name")
        if component.name in _ROLES:
            _refuse(
                f"component name {component.name!r} is also the name of an engine process, so logs and metrics would "
                "be ambiguous; choose another"
            )
    for name in _duplicates(component.name for component in definition.components):
        _refuse(f"topology {definition.name!r}: two components have the name {name!r}; rename one")
    if not any(component.kind is ComponentKind.SPOUT for component in definition.components):
        _refuse(f"topology {definition.name!r} has no spout, so there would be no tuples; add one")


def _check_shape(component: ComponentDefinition) -> None:
    if component.runtime != COMPONENT_RUNTIME:
        _refuse(
            f"component {component.name!r}: runtime {component.runtime!r} is not supported; "
            f"supported: {COMPONENT_RUNTIME!r}"
        )
    if not _ENTRY.fullmatch(component.entry):
        _refuse(
            f"component {component.name!r}: entry {component.entry!r} is not of the form 'module:Class'; "
            "define the class at the top level of a module"
        )
    if component.kind is ComponentKind.SPOUT and component.inputs:
        _refuse(f"spout {component.name!r} has inputs, which only a bolt can have; make it a bolt or remove them")
    if component.kind is ComponentKind.SPOUT and not component.outputs:
        _refuse(f"spout {component.name!r} has no outputs; declare at least one stream in 'outputs'")
    if component.kind is ComponentKind.BOLT and not component.inputs:
        _refuse(f"bolt {component.name!r} has no inputs, so it would never be called; give it 'inputs'")


def _check_outputs(component: ComponentDefinition) -> None:
    for name in _duplicates(output.name for output in component.outputs):
        _refuse(f"component {component.name!r}: two output streams have the name {name!r}; rename one")
    for output in component.outputs:
        _check_name(output.name, f"component {component.name!r}: stream name")
        _check_fields(component, output)


def _check_fields(component: ComponentDefinition, output: StreamDefinition) -> None:
    place = f"component {component.name!r}, stream {output.name!r}"
    if "" in output.fields:
        _refuse(f"{place}: a field has an empty name; name it")
    for name in _duplicates(output.fields):
        _refuse(f"{place}: two fields have the name {name!r}; rename one")


def _check_parallelism(component: ComponentDefinition, groups: int) -> None:
    place, count = f"component {component.name!r}: {TOPOLOGY_COMPONENT_PARALLELISM}", component.parallelism
    if type(count) is not int or count < 1:
        _refuse(f"{place} {count!r} is not an integer of 1 or more instances; raise it")
    if count > MAX_INSTANCES:
        _refuse(f"{place} {short_text(count)} exceeds the limit of {MAX_INSTANCES} instances in a topology; lower it")
    if count > groups and any(each.grouping.kind in _KEYED for each in component.inputs):
        _refuse(
            f"{place} {count} exceeds {TOPOLOGY_KEY_GROUPS}, {groups} key groups, and a grouping by fields gives each "
            f"instance at least one; lower it or raise {TOPOLOGY_KEY_GROUPS}"
        )


def _check_whole(definition: TopologyDefinition) -> None:
    total = sum(component.parallelism for component in definition.components)
    if total > MAX_INSTANCES:
        _refuse(
            f"topology {definition.name!r}: the sum of {TOPOLOGY_COMPONENT_PARALLELISM}, {short_text(total)}, exceeds "
            f"the limit of {MAX_INSTANCES} instances; lower some"
        )
    cycle = find_cycle(definition)
    if cycle:
        _refuse(
            f"topology {definition.name!r}: the components form a cycle, {' -> '.join(cycle)}; "
            "a stream with a cycle never ends, and a tuple tree never completes; remove one of these inputs"
        )


def _duplicates(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _refuse(message: str) -> None:
    raise TopologyError(message)


def _verify_input(
    bolt: ComponentDefinition, subscription: InputDefinition, components: Mapping[str, ComponentDefinition]
) -> None:
    """Checks that the subscription names an existing component, stream and fields, and has a complete grouping.

    Raises:
        TopologyError: when it does not; lists the known names and the nearest one.
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
        msg = f"{place}: the bolt subscribes to the stream twice; keep one of the two groupings"
        raise TopologyError(msg)
    _verify_grouping(place, subscription.grouping, stream)


def _verify_grouping(place: str, grouping: GroupingDefinition, stream: StreamDefinition) -> None:
    if grouping.kind in _KEYED:
        _verify_key(place, grouping, stream)
    elif grouping.fields:
        msg = (
            f"{place}: a {grouping.kind.value} grouping takes no fields, but has {known(grouping.fields)}; remove them"
        )
        raise TopologyError(msg)
    entry = grouping.entry
    if grouping.kind is GroupingKind.CUSTOM:
        if entry is not None and not _ENTRY.fullmatch(entry):
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
        msg = f"{place}: the grouping names a field twice: {', '.join(grouping.fields)}; name each once"
        raise TopologyError(msg)
