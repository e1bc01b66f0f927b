"""The module paths of heronpy, with the names and signatures that programs import and call."""

from __future__ import annotations

import importlib
import inspect
from importlib.util import find_spec
from pathlib import Path

import pytest

CONSTANTS = """
    TopologyReliabilityMode TOPOLOGY_WORKER_CHILDOPTS TOPOLOGY_COMPONENT_JVMOPTS TOPOLOGY_TICK_TUPLE_FREQ_SECS
    TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS TOPOLOGY_DEBUG TOPOLOGY_STMGRS TOPOLOGY_MESSAGE_TIMEOUT_SECS
    TOPOLOGY_COMPONENT_PARALLELISM TOPOLOGY_MAX_SPOUT_PENDING TOPOLOGY_AUTO_TASK_HOOKS TOPOLOGY_SERIALIZER_CLASSNAME
    TOPOLOGY_RELIABILITY_MODE TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS TOPOLOGY_STATEFUL_START_CLEAN
    TOPOLOGY_CONTAINER_CPU_REQUESTED TOPOLOGY_CONTAINER_RAM_REQUESTED TOPOLOGY_CONTAINER_DISK_REQUESTED
    TOPOLOGY_CONTAINER_MAX_RAM_HINT TOPOLOGY_CONTAINER_MAX_CPU_HINT TOPOLOGY_CONTAINER_MAX_DISK_HINT
    TOPOLOGY_CONTAINER_PADDING_PERCENTAGE TOPOLOGY_CONTAINER_RAM_PADDING TOPOLOGY_COMPONENT_CPUMAP
    TOPOLOGY_COMPONENT_RAMMAP TOPOLOGY_COMPONENT_DISKMAP TOPOLOGY_NAME TOPOLOGY_TEAM_NAME TOPOLOGY_TEAM_EMAIL
    TOPOLOGY_CAP_TICKET TOPOLOGY_PROJECT_NAME TOPOLOGY_ADDITIONAL_CLASSPATH TOPOLOGY_COMPONENT_OUTPUT_BPS
"""

MODULES = {
    "api_constants": CONSTANTS,
    "bolt.base_bolt": "BaseBolt",
    "bolt.bolt": "Bolt",
    "bolt.window_bolt": "SlidingWindowBolt TumblingWindowBolt WindowContext",
    "component.base_component": "BaseComponent",
    "component.component_spec": "GlobalStreamId HeronComponentSpec",
    "custom_grouping": "ICustomGrouping",
    "global_metrics": "incr init root_name safe_incr",
    "metrics": "IMetric CountMetric MultiCountMetric IReducer MeanReducer ReducedMetric MultiReducedMetric "
    "AssignableMetrics MultiAssignableMetrics MeanReducedMetric MultiMeanReducedMetric",
    "serializer": "IHeronSerializer PythonSerializer default_serializer",
    "spout.base_spout": "BaseSpout",
    "spout.spout": "Spout",
    "state.state": "HashMapState State",
    "state.stateful_component": "StatefulComponent",
    "stream": "Grouping Stream",
    "task_hook": "BoltAckInfo BoltExecuteInfo BoltFailInfo EmitInfo ITaskHook SpoutAckInfo SpoutFailInfo",
    "topology": "Topology TopologyBuilder TopologyType",
    "topology_context": "TopologyContext",
    "tuple": "Tuple TupleHelper",
}

METHODS = {
    "bolt.base_bolt:BaseBolt": {
        "spec": "(name=None, inputs=None, par=1, config=None, optional_outputs=None)",
        "emit": "(self, tup, stream='default', anchors=None, direct_task=None, need_task_ids=False)",
        "is_tick": "(tup)",
        "ack": "(self, tup)",
        "fail": "(self, tup)",
    },
    "bolt.bolt:Bolt": {
        "initialize": "(self, config, context)",
        "process": "(self, tup)",
        "process_tick": "(self, tup)",
    },
    "bolt.window_bolt:SlidingWindowBolt": {
        "processWindow": "(self, window_info, tuples)",
        "init_state": "(self, state)",
        "pre_save": "(self, checkpoint_id)",
    },
    "component.base_component:BaseComponent": {"log": "(self, message, level=None)"},
    "custom_grouping:ICustomGrouping": {
        "prepare": "(self, context, component, stream, target_tasks)",
        "choose_tasks": "(self, values)",
    },
    "metrics:IMetric": {"get_value_and_reset": "(self)"},
    "metrics:CountMetric": {"incr": "(self, to_add=1)"},
    "metrics:MultiCountMetric": {"add_key": "(self, key)", "incr": "(self, key, to_add=1)"},
    "metrics:IReducer": {"init": "(self)", "reduce": "(self, value)", "extract": "(self)"},
    "metrics:ReducedMetric": {"update": "(self, value)"},
    "metrics:MultiReducedMetric": {"update": "(self, key, value)", "add_key": "(self, key)"},
    "metrics:AssignableMetrics": {"update": "(self, value)"},
    "metrics:MultiAssignableMetrics": {"update": "(self, key, value)"},
    "serializer:PythonSerializer": {
        "initialize": "(self, config=None)",
        "serialize": "(self, obj)",
        "deserialize": "(self, input_str)",
    },
    "spout.base_spout:BaseSpout": {
        "spec": "(name=None, par=1, config=None, optional_outputs=None)",
        "emit": "(self, tup, tup_id=None, stream='default', direct_task=None, need_task_ids=False)",
    },
    "spout.spout:Spout": {
        "initialize": "(self, config, context)",
        "close": "(self)",
        "next_tuple": "(self)",
        "ack": "(self, tup_id)",
        "fail": "(self, tup_id)",
        "activate": "(self)",
        "deactivate": "(self)",
    },
    "state.state:HashMapState": {"put": "(self, key, value)", "get": "(self, key)", "clear": "(self)"},
    "state.stateful_component:StatefulComponent": {"init_state": "(self, state)", "pre_save": "(self, checkpoint_id)"},
    "task_hook:ITaskHook": {
        "prepare": "(self, conf, context)",
        "clean_up": "(self)",
        "emit": "(self, emit_info)",
        "spout_ack": "(self, spout_ack_info)",
        "spout_fail": "(self, spout_fail_info)",
        "bolt_execute": "(self, bolt_execute_info)",
        "bolt_ack": "(self, bolt_ack_info)",
        "bolt_fail": "(self, bolt_fail_info)",
    },
    "topology:Topology": {"write": "()"},
    "topology:TopologyBuilder": {
        "add_spec": "(self, *specs)",
        "add_spout": "(self, name, spout_cls, par, config=None, optional_outputs=None)",
        "add_bolt": "(self, name, bolt_cls, par, inputs, config=None, optional_outputs=None)",
        "set_config": "(self, config)",
        "build_and_submit": "(self)",
    },
    "topology_context:TopologyContext": {
        "get_task_id": "(self)",
        "get_component_id": "(self)",
        "get_cluster_config": "(self)",
        "get_topology_name": "(self)",
        "register_metric": "(self, name, metric, time_bucket_in_sec)",
        "get_sources": "(self, component_id)",
        "get_this_sources": "(self)",
        "get_component_tasks": "(self, component_id)",
        "add_task_hook": "(self, task_hook)",
    },
}


@pytest.mark.parametrize("module", MODULES)
def test_module_has_the_names_of_heronpys(module: str) -> None:
    """Programs import by full paths, so a missing name stops them at once."""
    found = importlib.import_module(f"heronpy.api.{module}")
    assert set(found.__all__) == set(MODULES[module].split())
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


def test_every_module_is_in_the_table() -> None:
    """Other modules would look like a part of heronpy."""
    spec = find_spec("heronpy.api")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    there = {".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")}
    assert {name for name in there if not name.endswith("__init__")} == set(MODULES)


@pytest.mark.parametrize(("entry", "name"), [(entry, name) for entry, names in METHODS.items() for name in names])
def test_method_takes_the_arguments_of_heronpys(entry: str, name: str) -> None:
    """Programs pass arguments by position and by name."""
    module, _, cls = entry.partition(":")
    method = getattr(getattr(importlib.import_module(f"heronpy.api.{module}"), cls), name)
    found = inspect.signature(method)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    assert str(inspect.Signature(bare)) == METHODS[entry][name]


def test_spouts_and_bolts_are_the_engines_own_classes() -> None:
    """No wrapper is between a program and the engine."""
    from heron import api  # noqa: PLC0415 - beside the import under test
    from heronpy.api.bolt.bolt import Bolt  # noqa: PLC0415 - the import is the subject
    from heronpy.api.spout.spout import Spout  # noqa: PLC0415 - the import is the subject

    assert (Bolt, Spout) == (api.Bolt, api.Spout)
