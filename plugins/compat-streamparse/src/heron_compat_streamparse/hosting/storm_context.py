"""The context of a task as Storm's multilang protocol has it: a dict with Storm's keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heron.api import TopologyContext
from heron.api.definition import GroupingDefinition, GroupingKind
from heron.api.tuple import TupleHelper
from heron_compat_streamparse.specs.spec import ComponentSpec

__all__ = ["FIELDS", "static_context", "storm_context"]

FIELDS = "source->stream->fields"
_COMPONENTS = "components"
_TICKS = {TupleHelper.TICK_SOURCE_COMPONENT: {TupleHelper.TICK_TUPLE_ID: ["rate_secs"]}}


def static_context(spec: ComponentSpec, specs: Sequence[ComponentSpec]) -> dict[str, object]:
    """Return what is the same for all tasks of a component, as JSON."""
    outputs = {str(each.name): each.output_streams() for each in specs}
    sources = [
        (source.component_id, source.stream_id, grouping.definition) for source, grouping in spec.groupings().items()
    ]
    targets: dict[str, dict[str, object]] = {}
    for consumer in specs:
        for source, grouping in consumer.groupings().items():
            if source.component_id == spec.name:
                targets.setdefault(source.stream_id, {})[str(consumer.name)] = _grouping(grouping.definition)
    groupings: dict[str, dict[str, object]] = {}
    fields: dict[str, dict[str, list[str]]] = {} if spec.is_spout else dict(_TICKS)
    for component, stream, definition in sources:
        groupings.setdefault(component, {})[stream] = _grouping(definition)
        declared = next((each.fields for each in outputs[component] if each.name == stream), ())
        fields.setdefault(component, {})[stream] = list(declared)
    own = outputs[str(spec.name)]
    return {
        "componentid": spec.name,
        "streams": [each.name for each in own],
        "stream->outputfields": {each.name: list(each.fields) for each in own},
        "stream->target->grouping": targets,
        "source->stream->grouping": groupings,
        FIELDS: fields,
        _COMPONENTS: sorted(outputs),
    }


def storm_context(static: Mapping[str, Any], context: TopologyContext) -> dict[str, Any]:
    """Return the context of a task: the static part, its id, and the component of each task at its start."""
    found = {key: value for key, value in static.items() if key != _COMPONENTS}
    found["taskid"] = context.get_task_id()
    found["task->component"] = {
        str(task): name for name in static[_COMPONENTS] for task in context.get_component_tasks(name)
    }
    return found


def _grouping(grouping: GroupingDefinition) -> dict[str, object]:
    if grouping.kind is GroupingKind.FIELDS:
        return {"type": "FIELDS", "fields": list(grouping.fields)}
    return {"type": "GLOBAL" if grouping.kind is GroupingKind.LOWEST else grouping.kind.value.upper()}
