"""The names and signatures that a heronpy program uses."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from heron import api
from heron.api import api_constants, global_metrics

SIGNATURES: list[tuple[Callable[..., object], str]] = [
    (api.Spout.spec, "(name=None, par=1, config=None, optional_outputs=None)"),
    (api.Spout.emit, "(self, tup, tup_id=None, stream='default', direct_task=None, need_task_ids=False)"),
    (api.Spout.initialize, "(self, config, context)"),
    (api.Spout.next_tuple, "(self)"),
    (api.Spout.ack, "(self, tup_id)"),
    (api.Spout.fail, "(self, tup_id)"),
    (api.Spout.activate, "(self)"),
    (api.Spout.deactivate, "(self)"),
    (api.Spout.close, "(self)"),
    (api.Bolt.spec, "(name=None, inputs=None, par=1, config=None, optional_outputs=None)"),
    (api.SlidingWindowBolt.spec, "(name=None, inputs=None, par=1, config=None, optional_outputs=None)"),
    (api.Bolt.emit, "(self, tup, stream='default', anchors=None, direct_task=None, need_task_ids=False)"),
    (api.Bolt.initialize, "(self, config, context)"),
    (api.Bolt.process, "(self, tup)"),
    (api.Bolt.process_tick, "(self, tup)"),
    (api.Bolt.is_tick, "(tup)"),
    (api.Bolt.ack, "(self, tup)"),
    (api.Bolt.fail, "(self, tup)"),
    (api.SlidingWindowBolt.processWindow, "(self, window_info, tuples)"),
    (api.BaseComponent.log, "(self, message, level=None)"),
    (api.GlobalStreamId, "(componentId, streamId)"),
    (api.HeronComponentSpec, "(name, python_class_path, is_spout, par, inputs=None, outputs=None, config=None)"),
    (api.Stream, "(fields=None, name='default', direct=False)"),
    (api.Grouping.fields, "(*fields)"),
    (api.Grouping.custom_serialized, "(serialized, is_java=True)"),
    (api.Grouping.is_grouping_sane, "(gtype)"),
    (api.ICustomGrouping.prepare, "(self, context, component, stream, target_tasks)"),
    (api.ICustomGrouping.choose_tasks, "(self, values)"),
    (api.TopologyBuilder, "(name)"),
    (api.TopologyBuilder.add_spec, "(self, *specs)"),
    (api.TopologyBuilder.add_spout, "(self, name, spout_cls, par, config=None, optional_outputs=None)"),
    (api.TopologyBuilder.add_bolt, "(self, name, bolt_cls, par, inputs, config=None, optional_outputs=None)"),
    (api.TopologyBuilder.set_config, "(self, config)"),
    (api.TopologyBuilder.build_and_submit, "(self)"),
    (api.Topology.write, "()"),
    (api.TopologyContext.register_metric, "(self, name, metric, time_bucket_in_sec)"),
    (api.TopologyContext.get_sources, "(self, component_id)"),
    (api.TopologyContext.get_component_tasks, "(self, component_id)"),
    (api.TopologyContext.add_task_hook, "(self, task_hook)"),
    (api.CountMetric.incr, "(self, to_add=1)"),
    (api.MultiCountMetric.incr, "(self, key, to_add=1)"),
    (api.MultiCountMetric.add_key, "(self, key)"),
    (api.ReducedMetric, "(reducer_cls)"),
    (api.ReducedMetric.update, "(self, value)"),
    (api.MultiReducedMetric, "(reducer)"),
    (api.MultiReducedMetric.update, "(self, key, value)"),
    (api.AssignableMetrics, "(init_val)"),
    (api.MultiAssignableMetrics.update, "(self, key, value)"),
    (api.MeanReducedMetric, "()"),
    (api.MultiMeanReducedMetric, "()"),
    (global_metrics.incr, "(key, to_add=1)"),
    (global_metrics.safe_incr, "(key, to_add=1)"),
    (global_metrics.init, "(metrics_collector, metrics_bucket)"),
    (api.IHeronSerializer.initialize, "(self, config)"),
    (api.PythonSerializer.initialize, "(self, config=None)"),
    (api.IHeronSerializer.serialize, "(self, obj)"),
    (api.IHeronSerializer.deserialize, "(self, input_str)"),
    (api.State.put, "(self, key, value)"),
    (api.State.get, "(self, key)"),
    (api.StatefulComponent.init_state, "(self, state)"),
    (api.StatefulComponent.pre_save, "(self, checkpoint_id)"),
    (api.ITaskHook.prepare, "(self, conf, context)"),
]


@pytest.mark.parametrize(("function", "signature"), SIGNATURES, ids=lambda each: getattr(each, "__qualname__", ""))
def test_a_signature_is_that_of_heronpy(function: Callable[..., object], signature: str) -> None:
    """A heronpy topology needs only other imports; it may pass arguments by position or by name."""
    found = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    assert str(inspect.Signature(bare)) == signature


NAMED_TUPLES = {
    api.WindowContext: ("start", "end"),
    api.EmitInfo: ("values", "stream_id", "task_id", "out_tasks"),
    api.SpoutAckInfo: ("message_id", "spout_task_id", "complete_latency_ms"),
    api.SpoutFailInfo: ("message_id", "spout_task_id", "fail_latency_ms"),
    api.BoltExecuteInfo: ("heron_tuple", "executing_task_id", "execute_latency_ms"),
    api.BoltAckInfo: ("heron_tuple", "acking_task_id", "process_latency_ms"),
    api.BoltFailInfo: ("heron_tuple", "failing_task_id", "fail_latency_ms"),
}


@pytest.mark.parametrize("kind", NAMED_TUPLES, ids=lambda kind: kind.__name__)
def test_a_named_tuple_has_heronpys_fields(kind: type) -> None:
    """Hooks and windows unpack these by position."""
    assert getattr(kind, "_fields") == NAMED_TUPLES[kind]  # noqa: B009 - mypy knows no common base


CONSTANTS = [
    "WORKER_CHILDOPTS",
    "COMPONENT_JVMOPTS",
    "TICK_TUPLE_FREQ_SECS",
    "ENABLE_MESSAGE_TIMEOUTS",
    "DEBUG",
    "STMGRS",
    "MESSAGE_TIMEOUT_SECS",
    "COMPONENT_PARALLELISM",
    "MAX_SPOUT_PENDING",
    "AUTO_TASK_HOOKS",
    "SERIALIZER_CLASSNAME",
    "RELIABILITY_MODE",
    "STATEFUL_CHECKPOINT_INTERVAL_SECONDS",
    "STATEFUL_START_CLEAN",
    "CONTAINER_CPU_REQUESTED",
    "CONTAINER_RAM_REQUESTED",
    "CONTAINER_DISK_REQUESTED",
    "CONTAINER_MAX_RAM_HINT",
    "CONTAINER_MAX_CPU_HINT",
    "CONTAINER_MAX_DISK_HINT",
    "CONTAINER_PADDING_PERCENTAGE",
    "CONTAINER_RAM_PADDING",
    "COMPONENT_CPUMAP",
    "COMPONENT_RAMMAP",
    "COMPONENT_DISKMAP",
    "NAME",
    "TEAM_NAME",
    "TEAM_EMAIL",
    "CAP_TICKET",
    "PROJECT_NAME",
    "ADDITIONAL_CLASSPATH",
    "COMPONENT_OUTPUT_BPS",
]


@pytest.mark.parametrize("name", CONSTANTS)
def test_each_of_heronpys_constants_names_a_known_key(name: str) -> None:
    """The check of a configuration refuses unknown keys."""
    assert getattr(api_constants, f"TOPOLOGY_{name}") in api.config.CONFIG_KEYS


def test_every_exported_name_exists() -> None:
    """`from heron.api import *` and the documentation read __all__."""
    assert [name for name in api.__all__ if not hasattr(api, name)] == []
