"""The topology of a program."""

from __future__ import annotations

from heron.api import Grouping, TopologyBuilder, api_constants
from heron.api.component_spec import HeronComponentSpec
from heron.api.stream_id import InputSource
from heron_testing.random_topologies.bolts import BOLT_CLASSES
from heron_testing.random_topologies.lineage import has_columns, is_custom
from heron_testing.random_topologies.program import BoltProgram, Program
from heron_testing.random_topologies.spouts import (
    ColumnSpout,
    ProgramSpout,
    StatefulColumnSpout,
    StatefulSpout,
)

__all__ = ["TOPOLOGY", "topology_of"]

TOPOLOGY = "random_topology"
"""The name of the topology."""

TICK_S = 0.05
CHECKPOINT_S = 0.3


def topology_of(program: Program, out: str = "") -> TopologyBuilder:
    """The topology of a program.

    Args:
        program: the program.
        out: the folder that tasks write their memories to; empty where the caller has the components.

    Raises:
        TopologyError: when the program has an input that does not exist.
    """
    builder = TopologyBuilder(TOPOLOGY)
    builder.set_config(
        {
            "program": program.to_json(),
            "out": out,
            api_constants.TOPOLOGY_STMGRS: program.containers,
            api_constants.TOPOLOGY_RELIABILITY_MODE: program.mode,
            api_constants.TOPOLOGY_MAX_SPOUT_PENDING: program.pending,
            api_constants.TOPOLOGY_SERIALIZER: program.serializer,
            # A tree that is lost is never complete, so the run does not end.
            api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: False,
            **_checkpoints(program),
        }
    )
    keeps_state, columns = program.mode == "EFFECTIVELY_ONCE", has_columns(program)
    spout_class = {
        (False, False): ProgramSpout,
        (True, False): ColumnSpout,
        (False, True): StatefulSpout,
        (True, True): StatefulColumnSpout,
    }
    specs: dict[str, HeronComponentSpec] = {}
    for spout in program.spouts:
        specs[spout.name] = builder.add_spout(
            spout.name, spout_class[spout.columns and columns, keeps_state], spout.tasks
        )
    for bolt in program.bolts:
        bolt_class = BOLT_CLASSES[bolt.receives, bolt.emits, keeps_state]
        ticks = {api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: TICK_S} if bolt.moment == "tick" else None
        specs[bolt.name] = builder.add_bolt(bolt.name, bolt_class, bolt.tasks, _inputs(bolt, specs), ticks)
    return builder


def _checkpoints(program: Program) -> dict[str, object]:
    if program.mode != "EFFECTIVELY_ONCE":
        return {}
    return {api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: CHECKPOINT_S}


def _inputs(bolt: BoltProgram, specs: dict[str, HeronComponentSpec]) -> dict[InputSource, Grouping]:
    return {specs[each.component][each.stream]: _grouping(each.grouping) for each in bolt.inputs}


def _grouping(name: str) -> Grouping:
    if is_custom(name):
        return Grouping.custom(name.removeprefix("custom "))
    if name in ("FIELDS", "PARTIAL_KEY"):
        return Grouping.fields("key") if name == "FIELDS" else Grouping.PARTIAL_KEY("key")
    found: Grouping = getattr(Grouping, name)
    return found
