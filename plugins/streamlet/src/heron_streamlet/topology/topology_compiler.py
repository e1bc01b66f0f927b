"""Compiles a pipeline to a topology: one component for each stage."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from heron.api import Grouping, HeronComponentSpec, Stream, TopologyBuilder, TopologyReliabilityMode, api_constants
from heron.errors import TopologyError
from heron.planner.key_group import key_group
from heron.spi.engine import PIPELINE_KEY
from heron_streamlet.plan.graph import Graph, check_picklable
from heron_streamlet.plan.operators import Keyed, Read, Repartition, Windowed, Write
from heron_streamlet.plan.stages import ENDS, Stage, StagePlan, fuse
from heron_streamlet.topology.partition_grouping import partition_grouping
from heron_streamlet.topology.settling_spout import SettlingSourceSpout
from heron_streamlet.topology.source_spout import PARTITIONS_KEY, PROGRESS, SourceSpout
from heron_streamlet.topology.stage_bolts import (
    POSITIONS_KEY,
    ClockStageBolt,
    KeyedStageBolt,
    StageBolt,
    WindowStageBolt,
)
from heron_streamlet.topology.task_host import STAGE_KEY, packed, stream_name
from heron_streamlet.windowing.keyed_operators import WindowFold
from heron_streamlet.windowing.window import SessionWindow

__all__ = ["compile_topology"]

_CHECKPOINT_S = 10.0
_KEY_GROUPS = 1024
_TICKS_PER_WINDOW = 20
_FLUSHES_PER_RESULT = 4
_SHORTEST_TICK_S, _LONGEST_TICK_S = 0.01, 1.0


def compile_topology(name: str, graph: Graph, config: Mapping[str, object]) -> TopologyBuilder:
    """The topology of a pipeline.

    At least once with state, checkpoints are taken every 10 s, unless the configuration has another interval: state in
    memory alone would be lost with its process, although its records were acked.

    Raises:
        TopologyError: when a function cannot be pickled, or a component has a wrong name; names operator and line.
        ConfigError: when the configuration is wrong.
        UsageError: when a sink does not fit the configuration, or a source refuses its arguments.
    """
    plan = fuse(graph, ENDS if _reads_once(config) else ())
    builder = TopologyBuilder(name)
    values = _with_checkpoints(plan, config)
    builder.set_config(values)
    for node in graph.nodes:
        if isinstance(node.operator, Write):
            node.operator.sink.check(values)
    specs: dict[int, HeronComponentSpec] = {}
    for stage in plan.stages:
        outputs = [Stream(fields=list(outlet.fields), name=stream_name(outlet)) for outlet in stage.outlets]
        if isinstance(stage.head.operator, Read):
            spec = _spout(plan, stage, stage.head.operator, outputs, config)
        else:
            spec = _bolt(plan, stage, specs, outputs)
        specs[stage.head.number] = spec
        builder.add_spec(spec)
    return builder


def _spout(
    plan: StagePlan, stage: Stage, read: Read, outputs: list[Stream], config: Mapping[str, object]
) -> HeronComponentSpec:
    groups = config.get(api_constants.TOPOLOGY_KEY_GROUPS, _KEY_GROUPS)
    # The partitions come first: a source may keep what it finds, and is packed with it.
    partitions = _partitions(stage, read, groups if type(groups) is int and groups > 0 else 1)
    own: dict[str, object] = {PARTITIONS_KEY: partitions, STAGE_KEY: _packed(plan, stage)}
    outputs = [*outputs, PROGRESS] if stage.ends else outputs
    spout = SettlingSourceSpout if read.source.settles else SourceSpout
    return spout.spec(stage.name, stage.head.partitions, own, outputs)


def _bolt(
    plan: StagePlan, stage: Stage, specs: Mapping[int, HeronComponentSpec], outputs: list[Stream]
) -> HeronComponentSpec:
    inputs = list(plan.inputs(stage))
    own: dict[str, object] = {STAGE_KEY: _packed(plan, stage)}
    if stage.by_clock:
        own[POSITIONS_KEY] = {f"{each.name}:{stream_name(outlet)}": outlet.position for each, outlet in inputs}
    if (tick_s := _tick_s(plan, stage)) is not None:
        own[api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS] = tick_s
    groupings = {
        specs[each.head.number][stream_name(outlet)]: _grouping(stage, keyed=outlet.form.keyed)
        for each, outlet in inputs
    }
    return _bolt_class(stage).spec(stage.name, groupings, stage.head.partitions, own, outputs)


def _reads_once(config: Mapping[str, object]) -> bool:
    """Whether nothing is replayed and nothing is saved: then an end of a stream needs no task of its own."""
    mode = config.get(api_constants.TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode.ATMOST_ONCE)
    return mode == TopologyReliabilityMode.ATMOST_ONCE


def _bolt_class(stage: Stage) -> type[StageBolt]:
    if stage.by_clock:
        return ClockStageBolt
    operator = stage.head.operator
    if isinstance(operator, Windowed) and type(operator.operator) is WindowFold and not stage.early_nodes:
        return WindowStageBolt
    return KeyedStageBolt if isinstance(operator, (Keyed, Windowed)) else StageBolt


def _with_checkpoints(plan: StagePlan, config: Mapping[str, object]) -> dict[str, object]:
    values = {**config, PIPELINE_KEY: plan.text()}
    key = api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS
    mode = values.get(api_constants.TOPOLOGY_RELIABILITY_MODE)
    has_state = any(isinstance(stage.head.operator, (Keyed, Windowed)) for stage in plan.stages)
    if mode == TopologyReliabilityMode.ATLEAST_ONCE and has_state:
        values.setdefault(key, _CHECKPOINT_S)
    return values


def _grouping(stage: Stage, *, keyed: bool) -> Grouping:
    operator = stage.head.operator
    if keyed:
        return Grouping.fields("key")
    if isinstance(operator, Repartition) and operator.function is not None:
        return partition_grouping(operator.function, stage.head.step)
    return Grouping.SHUFFLE


def _partitions(stage: Stage, operator: Read, groups: int) -> list[list[str]]:
    """``[key, name]`` of each partition. The keys divide the partitions evenly among the tasks of a new topology.

    The engine gives each task a range of key groups. Partition number i of n gets a key in the i-th of n ranges.
    """
    names = operator.source.partitions(stage.head.partitions)
    keys = []
    for number, name in enumerate(names):
        low, high = number * groups // len(names), (number + 1) * groups // len(names)
        wanted = range(low, max(high, low + 1))
        salts = (f"{name}#{salt}" for salt in itertools.count())
        keys.append([next(key for key in salts if key_group((key,), groups) in wanted), name])
    return keys


def _tick_s(plan: StagePlan, stage: Stage) -> float | None:
    """How often the tasks of a stage need a tick; None for never."""
    wanted = [early.every_us / 1_000_000 for _, early in stage.early_nodes]
    targets = {outlet.target for outlet in stage.outlets if outlet.form.assigned}
    for other in plan.stages:  # what is combined for them must be sent when their early results are due
        if other.head.number in targets:
            wanted += [early.every_us / 1_000_000 / _FLUSHES_PER_RESULT for _, early in other.early_nodes]
    if stage.by_clock:
        window = stage.head.operator.window  # type: ignore[attr-defined]  # windows by the clock are windowed
        length_us = window.gap_us if isinstance(window, SessionWindow) else min(window.size_us, window.slide_us)
        wanted.append(min(length_us / 1_000_000 / _TICKS_PER_WINDOW, _LONGEST_TICK_S))
    return max(min(wanted), _SHORTEST_TICK_S) if wanted else None


def _packed(plan: StagePlan, stage: Stage) -> str:
    """The pickled stage.

    Raises:
        TopologyError: when an operator cannot be pickled.
    """
    targets = {outlet.target: plan.graph.nodes[outlet.target].operator for outlet in stage.outlets}
    window_of = {number: each for number, each in targets.items() if isinstance(each, Windowed)}
    try:
        return packed(stage, window_of)
    except Exception as error:  # pickling runs the code of the author's objects
        for node in (*stage.nodes, *(plan.graph.nodes[number] for number in window_of)):
            check_picklable(node)
        msg = f"stage {stage.name!r} cannot be pickled: {error}"
        raise TopologyError(msg) from error
