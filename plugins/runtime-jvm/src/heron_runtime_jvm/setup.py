"""What the first frame says to a child: its component, the topology, and where its streams lead."""

from __future__ import annotations

from heron.api import TopologyContext
from heron.api.api_constants import TOPOLOGY_SERIALIZER
from heron.api.config import setting
from heron.api.definition import ComponentDefinition, TopologyDefinition
from heron_runtime_jvm.jvm_settings import JVM_KEY, JvmSettings
from heron_runtime_multilang.child_settings import CONFIG_KEY

__all__ = ["plan_of", "setup_of"]

_PICKLE = "pickle"


def setup_of(settings: JvmSettings, context: TopologyContext, *, is_spout: bool, tracks: bool) -> dict[str, object]:
    """Return the setup of a child that starts now; `JvmProtocol.begin` adds `first_root` and `pid_folder`."""
    topology, name = context.get_topology(), context.get_component_id()
    own = topology.component(name)
    config: dict[str, object] = {}
    if settings.java_class:
        config = {key: value for key, value in context.get_config().items() if key not in (JVM_KEY, CONFIG_KEY)}
    return {
        "topology": topology.name,
        "component": name,
        "task": context.get_task_id(),
        "spout": is_spout,
        "tracks": tracks,
        "java_class": settings.java_class,
        "arguments": list(settings.arguments),
        "storm_topology": settings.storm_topology or None,
        "storm_component": settings.storm_component or name,
        "config": {**config, **(settings.storm_config or {})},
        "outputs": [[each.name, list(each.fields), _other_reader(topology, own, each.name)] for each in own.outputs],
        "components": [_component(each, context) for each in topology.components],
    }


def plan_of(context: TopologyContext) -> list[tuple[str, list[int]]]:
    """Return the ids of the tasks of each component, for a child that runs."""
    return [(each.name, list(context.get_component_tasks(each.name))) for each in context.get_topology().components]


def _other_reader(topology: TopologyDefinition, component: ComponentDefinition, stream: str) -> str | None:
    """What carries plain data alone: another serializer than pickle, or a consumer that is not in a JVM."""
    serializer = setting({**topology.config, **component.config}, TOPOLOGY_SERIALIZER)
    if serializer != _PICKLE:
        return f"the serializer {serializer!r}"
    readers = (consumer for consumer, _ in topology.consumers(component.name, stream))
    return next((f"component {each.name!r}" for each in readers if JVM_KEY not in each.config), None)


def _component(component: ComponentDefinition, context: TopologyContext) -> dict[str, object]:
    return {
        "name": component.name,
        "spout": not component.inputs,
        "tasks": list(context.get_component_tasks(component.name)),
        "streams": {each.name: list(each.fields) for each in component.outputs},
        "inputs": [
            [each.component, each.stream, each.grouping.kind.value, list(each.grouping.fields)]
            for each in component.inputs
        ],
    }
