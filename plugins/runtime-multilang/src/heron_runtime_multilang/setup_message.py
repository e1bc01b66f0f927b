"""The first message to a child: its configuration, and the view that it has of the topology."""

from __future__ import annotations

from heron.api import TopologyContext, TupleHelper, api_constants
from heron.api.definition import GroupingDefinition, GroupingKind
from heron_runtime_multilang.child_settings import CONFIG_KEY

__all__ = ["TICK_FIELD", "setup_message"]

TICK_FIELD = "rate_secs"  # Storm's name

_TYPES = {GroupingKind.LOWEST: "GLOBAL", GroupingKind.CUSTOM: "CUSTOM_OBJECT"}


def setup_message(context: TopologyContext, pid_folder: str) -> dict[str, object]:
    """Return the message; the child notes its process id in `pid_folder`."""
    topology, name = context.get_topology(), context.get_component_id()
    own = topology.component(name)
    targets: dict[str, dict[str, object]] = {output.name: {} for output in own.outputs}
    for output in own.outputs:
        for consumer, subscription in topology.consumers(name, output.name):
            targets[output.name][consumer.name] = _grouping(subscription.grouping)
    groupings: dict[str, dict[str, object]] = {}
    fields: dict[str, dict[str, object]] = {}
    for each in own.inputs:
        groupings.setdefault(each.component, {})[each.stream] = _grouping(each.grouping)
        fields.setdefault(each.component, {})[each.stream] = list(topology.fields_of(each.component, each.stream))
    fields[TupleHelper.TICK_SOURCE_COMPONENT] = {TupleHelper.TICK_TUPLE_ID: [TICK_FIELD]}
    config = {key: value for key, value in context.get_config().items() if key != CONFIG_KEY}
    tasks = {str(task): each.name for each in topology.components for task in context.get_component_tasks(each.name)}
    return {
        "conf": {**config, api_constants.TOPOLOGY_NAME: topology.name},
        "pidDir": pid_folder,
        "context": {
            "task->component": tasks,
            "taskid": context.get_task_id(),
            "componentid": name,
            "streams": [output.name for output in own.outputs],
            "stream->outputfields": {output.name: list(output.fields) for output in own.outputs},
            "stream->target->grouping": targets,
            "source->stream->grouping": groupings,
            "source->stream->fields": fields,
        },
    }


def _grouping(grouping: GroupingDefinition) -> dict[str, object]:
    kind = grouping.kind
    fields = {"fields": list(grouping.fields)} if grouping.fields else {}
    return {"type": _TYPES.get(kind, kind.name), **fields}
