"""What may differ between the running topology and new code: the new definition, or one error with all reasons. Pure.

Streams, groupings and the number of tasks belong to the plan of the running topology. Classes and configuration belong
to the code of a task. So the first must be equal, and the second may differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from heron.api.api_constants import (
    TOPOLOGY_AUTO_TASK_HOOKS,
    TOPOLOGY_COMPONENT_CPUMAP,
    TOPOLOGY_COMPONENT_DISKMAP,
    TOPOLOGY_COMPONENT_PARALLELISM,
    TOPOLOGY_COMPONENT_RAMMAP,
    TOPOLOGY_DEAD_LETTERS_BYTES,
    TOPOLOGY_DEBUG,
    TOPOLOGY_ON_ERROR,
    TOPOLOGY_REPLAY_BACKOFF_SECS,
    TOPOLOGY_REPLAY_BYTES,
    TOPOLOGY_STATEFUL_START_FROM,
    TOPOLOGY_STMGRS,
    TOPOLOGY_TICK_TUPLE_FREQ_SECS,
)
from heron.api.config import merged_config
from heron.api.definition import ComponentDefinition, InputDefinition, TopologyDefinition
from heron.errors import UsageError
from heron.planner.runtime_config import LIVE_KEYS

__all__ = ["NewCode", "compared"]

_OF_TASKS = LIVE_KEYS | {
    TOPOLOGY_AUTO_TASK_HOOKS,
    TOPOLOGY_DEAD_LETTERS_BYTES,
    TOPOLOGY_DEBUG,
    TOPOLOGY_ON_ERROR,
    TOPOLOGY_REPLAY_BACKOFF_SECS,
    TOPOLOGY_REPLAY_BYTES,
    TOPOLOGY_TICK_TUPLE_FREQ_SECS,
}
"""The keys of the engine that a task reads when it starts, and no other process."""
_OF_PACKING = frozenset(
    {
        TOPOLOGY_COMPONENT_CPUMAP,
        TOPOLOGY_COMPONENT_DISKMAP,
        TOPOLOGY_COMPONENT_PARALLELISM,
        TOPOLOGY_COMPONENT_RAMMAP,
        TOPOLOGY_STATEFUL_START_FROM,
        TOPOLOGY_STMGRS,
    }
)
"""Keys that say how a topology starts; the running one keeps its values."""
_CONTAINERS = "topology.container."
_ENGINE = "topology."


@dataclass(frozen=True, slots=True)
class NewCode:
    """The definition that the new tasks get, the components whose configuration or class differs, and notes."""

    topology: TopologyDefinition
    changed: tuple[str, ...]
    notes: tuple[str, ...]


def compared(running: TopologyDefinition, wanted: TopologyDefinition) -> NewCode:
    """Return what new code makes of the running topology.

    Raises:
        UsageError: when the new code defines another topology; names every difference.
    """
    if problems := (*_shapes(running, wanted), *_engine_keys(running, wanted)):
        msg = f"the new code does not fit the running topology {running.name!r}: {'; '.join(problems)}"
        raise UsageError(msg)
    config = _kept(running.config, wanted.config)
    notes = list(_values("", running.config, config))
    components, changed = [], []
    for before in running.components:
        new = wanted.component(before.name)
        if new.parallelism != before.parallelism:
            notes.append(f"{before.name}: stays at {before.parallelism} tasks; the file says {new.parallelism}")
        after = replace(new, parallelism=before.parallelism, config=_kept(before.config, new.config))
        components.append(after)
        notes += _values(before.name, before.config, after.config)
        same = merged_config(running.config, before.config) == merged_config(config, after.config)
        if not same or after.entry != before.entry:
            changed.append(before.name)
    return NewCode(TopologyDefinition(running.name, tuple(components), config), tuple(changed), tuple(notes))


def _shapes(running: TopologyDefinition, wanted: TopologyDefinition) -> Iterator[str]:
    if wanted.name != running.name:
        yield f"it defines topology {wanted.name!r}"
        return
    before = {each.name: each for each in running.components}
    after = {each.name: each for each in wanted.components}
    yield from (f"component {name!r} is missing" for name in before if name not in after)
    yield from (f"component {name!r} is new" for name in after if name not in before)
    for name in before.keys() & after.keys():
        yield from _component(before[name], after[name])
    if before.keys() == after.keys() and list(before) != list(after):
        yield f"the order of its components is {', '.join(after)}, not {', '.join(before)}"


def _component(before: ComponentDefinition, after: ComponentDefinition) -> Iterator[str]:
    name = before.name
    if (before.kind, before.runtime) != (after.kind, after.runtime):
        yield f"component {name!r} is a {after.kind.value}, not a {before.kind.value}"
    old, new = ({each.name: each.fields for each in one.outputs} for one in (before, after))
    for stream in {**old, **new}:
        if stream not in new:
            yield f"{name!r} has no stream {stream!r}"
        elif stream not in old:
            yield f"{name!r} has a new stream {stream!r}"
        elif old[stream] != new[stream]:
            yield f"stream {stream!r} of {name!r} has the fields {_names(new[stream])}, not {_names(old[stream])}"
    if before.inputs != after.inputs:
        yield f"{name!r} reads {_inputs(after)}, not {_inputs(before)}"
    elif list(old) != list(new) and old == new:
        yield f"the streams of {name!r} are in another order"


def _engine_keys(running: TopologyDefinition, wanted: TopologyDefinition) -> Iterator[str]:
    pairs = [("", running.config, wanted.config)]
    there = {each.name: each.config for each in wanted.components}
    pairs += [(each.name, each.config, there[each.name]) for each in running.components if each.name in there]
    for component, before, after in pairs:
        for key in {**before, **after}:
            if not key.startswith(_ENGINE) or key in _OF_TASKS or _is_of_packing(key):
                continue
            if before.get(key) != after.get(key):
                where = f" of {component!r}" if component else ""
                yield f"{key}{where} is {_text(after.get(key))}, not {_text(before.get(key))}; submit it again for that"


def _kept(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    """The new configuration with the values that stay."""
    moved = {key: value for key, value in after.items() if not _is_of_packing(key)}
    return moved | {key: value for key, value in before.items() if _is_of_packing(key)}


def _is_of_packing(key: str) -> bool:
    return key in _OF_PACKING or key.startswith(_CONTAINERS)


def _values(component: str, before: dict[str, object], after: dict[str, object]) -> Iterator[str]:
    for key in sorted({**before, **after}):
        if before.get(key) != after.get(key):
            place = f"{component}: " if component else ""
            yield f"{place}{key}: {_text(before.get(key))} -> {_text(after.get(key))}"


def _inputs(component: ComponentDefinition) -> str:
    return ", ".join(map(_input, component.inputs)) or "nothing"


def _input(each: InputDefinition) -> str:
    by = f" by {_names(each.grouping.fields)}" if each.grouping.fields else ""
    custom = f" {each.grouping.entry}{_text(each.grouping.arguments)}" if each.grouping.entry else ""
    return f"{each.component}/{each.stream} ({each.grouping.kind.value}{by}{custom})"


def _names(fields: tuple[str, ...]) -> str:
    return "(" + ", ".join(fields) + ")"


def _text(value: object) -> str:
    text = json.dumps(value, default=str) if value is not None else "unset"
    return text if len(text) <= 60 else f"{text[:57]}..."
