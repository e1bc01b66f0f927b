"""A program for heronpy with every module path and every call. It imports nothing else and does not end.

    heron run heronpy_calls.py -- NAME FOLDER

Each task keeps a file in FOLDER with its records up to date.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import heronpy.api.api_constants as constants
from heronpy.api import global_metrics
from heronpy.api.bolt.base_bolt import BaseBolt
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.bolt.window_bolt import SlidingWindowBolt, TumblingWindowBolt, WindowContext
from heronpy.api.component.base_component import BaseComponent
from heronpy.api.component.component_spec import GlobalStreamId, HeronComponentSpec
from heronpy.api.custom_grouping import ICustomGrouping
from heronpy.api.metrics import (
    AssignableMetrics,
    CountMetric,
    IMetric,
    IReducer,
    MeanReducedMetric,
    MeanReducer,
    MultiAssignableMetrics,
    MultiCountMetric,
    MultiMeanReducedMetric,
    MultiReducedMetric,
    ReducedMetric,
)
from heronpy.api.serializer import PythonSerializer, default_serializer
from heronpy.api.spout.base_spout import BaseSpout
from heronpy.api.spout.spout import Spout
from heronpy.api.state.state import HashMapState, State
from heronpy.api.state.stateful_component import StatefulComponent
from heronpy.api.stream import Grouping, Stream
from heronpy.api.task_hook import ITaskHook
from heronpy.api.topology import TopologyBuilder
from heronpy.api.topology_context import TopologyContext
from heronpy.api.tuple import Tuple, TupleHelper

NUMBERS = 100
FAILED_ONCE = 7


def write_facts(folder: str, context: TopologyContext, facts: dict[str, Any], kind: str = "") -> None:
    """Replaces the file of the task."""
    path = os.path.join(folder, f"{kind}{context.get_component_id()}-{context.get_task_id()}.json")
    with open(path + ".part", "w") as file:
        json.dump(facts, file)
    os.rename(path + ".part", path)


class CountingHook(ITaskHook):
    """Counts its calls."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.folder, self.context = conf["folder"], context
        self.calls: Counter[str] = Counter()

    def clean_up(self) -> None:
        write_facts(self.folder, self.context, self.calls, "hook-")

    def emit(self, emit_info: Any) -> None:
        values, stream_id, task_id, _ = emit_info
        assert (task_id, len(values)) == (self.context.get_task_id(), 2 if stream_id == "odd" else len(values))
        self.calls["emit"] += 1

    def spout_ack(self, spout_ack_info: Any) -> None:
        assert spout_ack_info.complete_latency_ms >= 0
        self.calls["spout_ack"] += 1

    def spout_fail(self, spout_fail_info: Any) -> None:
        assert spout_fail_info.message_id == FAILED_ONCE
        self.calls["spout_fail"] += 1

    def bolt_execute(self, bolt_execute_info: Any) -> None:
        assert isinstance(bolt_execute_info.heron_tuple, Tuple)
        self.calls["bolt_execute"] += 1

    def bolt_ack(self, bolt_ack_info: Any) -> None:
        assert bolt_ack_info.process_latency_ms >= 0
        self.calls["bolt_ack"] += 1

    def bolt_fail(self, bolt_fail_info: Any) -> None:
        assert bolt_fail_info.failing_task_id == self.context.get_task_id()
        self.calls["bolt_fail"] += 1


class LateHook(ITaskHook):
    """Overrides one method only."""

    emits = 0

    def emit(self, emit_info: Any) -> None:
        self.emits += 1


class NumberSpout(Spout):
    outputs = ["number", Stream(fields=["number", "reason"], name="odd")]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        assert isinstance(self, (BaseComponent, BaseSpout))
        self.folder, self.context = config["folder"], context
        self.hook = LateHook()
        context.add_task_hook(self.hook)
        self.waiting = list(range(NUMBERS))
        self.facts: dict[str, Any] = {"acked": [], "failed": [], "odd_tasks": [], "calls": []}
        self.facts["mine"] = config["mine"]

    def next_tuple(self) -> None:
        if not self.waiting:
            return
        number = self.waiting.pop(0)
        self.emit([number], tup_id=number)
        if number % 2:
            tasks = self.emit([number, "it is odd"], ("odd", number), stream="odd", need_task_ids=True)
            self.facts["odd_tasks"].append(tasks)

    def ack(self, tup_id: Any) -> None:
        self.facts["acked"].append(tup_id)
        self.write()

    def fail(self, tup_id: Any) -> None:
        self.facts["failed"].append(tup_id)
        self.waiting.append(tup_id)

    def activate(self) -> None:
        self.facts["calls"].append("activate")
        self.write()

    def deactivate(self) -> None:
        self.facts["calls"].append("deactivate")
        self.write()

    def close(self) -> None:
        self.facts["calls"].append("close")
        self.write()

    def write(self) -> None:
        write_facts(self.folder, self.context, {**self.facts, "hooked": self.hook.emits})


class Largest(IReducer):
    """Has no `init`: the largest value ever."""

    largest = 0.0

    def reduce(self, value: float) -> None:
        self.largest = max(self.largest, value)

    def extract(self) -> float:
        return self.largest


class Answer(IMetric):
    def get_value_and_reset(self) -> int:
        return 42


class SeenBolt(Bolt):
    """Stores what it receives, and acks it."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        assert isinstance(self, (BaseComponent, BaseBolt))
        self.folder, self.context = config["folder"], context
        self.seen: dict[str, list[Any]] = {}
        self.ticks = 0

    def process(self, tup: Any) -> None:
        _, component, stream, task, values = tup
        assert (component, stream, task) == (tup.component, tup.stream, tup.task)
        self.seen.setdefault(f"{component}:{stream}", []).append(list(values))
        self.ack(tup)

    def process_tick(self, tup: Any) -> None:
        assert self.is_tick(tup)
        assert (tup.stream, tup.component) == (TupleHelper.TICK_TUPLE_ID, TupleHelper.TICK_SOURCE_COMPONENT)
        self.ack(tup)
        self.ticks += 1
        write_facts(self.folder, self.context, self.facts())

    def facts(self) -> dict[str, Any]:
        return {"seen": self.seen, "ticks": self.ticks}


class CountBolt(SeenBolt):
    """Emits anchored tuples on two streams, fails one number once, and has metrics."""

    outputs = ["number", "count"]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.failed = False
        self.count, self.by_parity = CountMetric(), MultiCountMetric()
        self.mean, self.mean_by_parity = MeanReducedMetric(), MultiMeanReducedMetric()
        self.largest, self.largest_by_parity = ReducedMetric(Largest), MultiReducedMetric(MeanReducer)
        self.last, self.last_by_parity = AssignableMetrics(0), MultiAssignableMetrics()
        self.by_parity.add_key("never")
        self.largest_by_parity.add_key("never")
        for name in ("count", "by_parity", "mean", "mean_by_parity", "largest", "largest_by_parity", "last"):
            context.register_metric(name, getattr(self, name), 1)
        context.register_metric("last_by_parity", self.last_by_parity, time_bucket_in_sec=1)
        context.register_metric("answer", Answer(), 1)
        for level in (None, "trace", "debug", "info", "warn", "error"):
            self.log(f"logged at {level}", level)
        self.logger.info("logged by the logger")

    def process(self, tup: Any) -> None:
        (number,) = tup.values
        if number == FAILED_ONCE and not self.failed:
            self.failed = True
            self.fail(tup)
            return
        parity = "odd" if number % 2 else "even"
        self.count.incr()
        self.by_parity.incr(parity, 2)
        self.mean.update(number)
        self.mean_by_parity.update(parity, number)
        self.largest.update(number)
        self.largest_by_parity.update(parity, number)
        self.last.update(number)
        self.last_by_parity.update(parity, number)
        global_metrics.incr("processed")
        global_metrics.safe_incr("doubled", 2)
        self.emit([number, 1], anchors=[tup])
        self.emit([number], stream="extra", anchors=[tup])
        super().process(tup)

    def facts(self) -> dict[str, Any]:
        context = self.context
        return {
            **super().facts(),
            "name": context.get_topology_name(),
            "component": context.get_component_id(),
            "tasks": context.get_component_tasks("count"),
            "sources": [[each.component_id, each.stream_id] for each in context.get_this_sources()],
            "grouped": [[each.component_id, each.stream_id] for each in context.get_sources("grouped")],
            "cluster": context.get_cluster_config()["folder"],
        }


class StatefulBolt(SeenBolt, StatefulComponent):
    def init_state(self, state: State) -> None:
        assert isinstance(state, HashMapState)
        state.put("forgotten", 1)
        state.clear()
        state.put("begun", True)
        self.state = state

    def pre_save(self, checkpoint_id: str) -> None:
        self.state.put("seen", self.seen)

    def facts(self) -> dict[str, Any]:
        assert self.state.get("forgotten") is None
        keys = [key for _, key in self.state.enumerate()]
        return {**super().facts(), "state": {str(key): self.state.get(key) for key in keys}}


class OddOrEven(ICustomGrouping):
    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Any) -> None:
        assert (context.get_component_id(), component, stream) == ("count", "count", "default")
        self.tasks = target_tasks

    def choose_tasks(self, values: Any) -> list[int]:
        return [self.tasks[values[0] % 2]]


class LastTask(ICustomGrouping):
    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Any) -> None:
        self.last = target_tasks[-1]

    def choose_tasks(self, values: Any) -> list[int]:
        return [self.last]


class Windows:
    """The common part of both window bolts."""

    folder: str
    context: TopologyContext
    windows: list[Any]

    def keep(self, window_info: WindowContext, tuples: list[Any]) -> None:
        start, end = window_info
        self.windows.append([end - start, [tup.values[0] for tup in tuples]])
        write_facts(self.folder, self.context, {"windows": self.windows})


class SlidingBolt(SlidingWindowBolt, Windows):
    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.folder, self.context, self.windows = config["folder"], context, []

    def processWindow(self, window_info: WindowContext, tuples: list[Any]) -> None:
        self.keep(window_info, tuples)


class TumblingBolt(TumblingWindowBolt, Windows):
    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.folder, self.context, self.windows = config["folder"], context, []

    def processWindow(self, window_info: WindowContext, tuples: list[Any]) -> None:
        self.keep(window_info, tuples)


def build(name: str, folder: str) -> TopologyBuilder:
    """Builds the topology with every way of building one."""
    serializer = PythonSerializer()
    assert serializer.deserialize(default_serializer.serialize(lambda: folder))() == folder
    ticking = {constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.1}
    builder = TopologyBuilder(name=name)
    numbers = builder.add_spout("numbers", NumberSpout, par=1, config={"mine": [1, {"a": None}]})
    extra = [Stream(fields=["number"], name="extra")]
    count = builder.add_bolt("count", CountBolt, 2, {numbers: Grouping.fields("number")}, ticking, extra)
    for each, par, inputs in (
        ("shuffled", 2, [count["extra"]]),
        ("all", 2, {count["extra"]: Grouping.ALL}),
        ("lowest", 2, {count["extra"]: Grouping.LOWEST}),
        ("global", 2, {count["extra"]: Grouping.GLOBAL}),
        ("none", 2, {count["extra"]: Grouping.NONE}),
        ("near", 2, {count["extra"]: Grouping.LOCAL_OR_SHUFFLE}),
        ("fields", 2, {count: Grouping.fields(["number", "count"])}),
        ("grouped", 2, {count: Grouping.custom(OddOrEven()), numbers: Grouping.SHUFFLE}),
        ("named", 2, {count: Grouping.custom("heronpy_calls.LastTask")}),
        ("odd", 1, {GlobalStreamId("numbers", "odd"): Grouping.SHUFFLE}),
    ):
        builder.add_bolt(each, SeenBolt, par=par, inputs=inputs, config=ticking)
    path, inputs = "heronpy_calls.StatefulBolt", {numbers: Grouping.SHUFFLE}
    stateful = HeronComponentSpec("stateful", path, False, 1, inputs=inputs, outputs=[], config=ticking)
    sliding = SlidingBolt.spec(
        name="sliding",
        inputs=[numbers],
        config={SlidingWindowBolt.WINDOW_DURATION_SECS: 0.4, SlidingWindowBolt.WINDOW_SLIDEINTERVAL_SECS: 0.2},
    )
    tumbling = TumblingBolt.spec("tumbling", [numbers], 1, {TumblingWindowBolt.WINDOW_DURATION_SECS: 0.3})
    builder.add_spec(stateful, sliding, tumbling)
    assert (count.get_out_streamids(), numbers["odd"].stream_id) == ({"default", "extra"}, "odd")
    builder.set_config(
        {
            constants.TOPOLOGY_RELIABILITY_MODE: constants.TopologyReliabilityMode.ATLEAST_ONCE,
            constants.TOPOLOGY_MESSAGE_TIMEOUT_SECS: "60",
            constants.TOPOLOGY_MAX_SPOUT_PENDING: 100,
            constants.TOPOLOGY_AUTO_TASK_HOOKS: ["heronpy_calls.CountingHook"],
            constants.TOPOLOGY_WORKER_CHILDOPTS: "-Xmx1g",
            "folder": folder,
        }
    )
    return builder


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("Topology's name and folder are not specified")
        sys.exit(1)
    build(*sys.argv[1:]).build_and_submit()
