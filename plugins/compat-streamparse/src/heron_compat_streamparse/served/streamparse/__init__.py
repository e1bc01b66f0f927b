"""streamparse as Heron serves it; each module re-exports names of `heron_compat_streamparse`."""

from __future__ import annotations

from heron_compat_streamparse.components.batching_bolt import BatchingBolt, TicklessBatchingBolt
from heron_compat_streamparse.components.bolt import Bolt, JavaBolt, ShellBolt
from heron_compat_streamparse.components.component import StormHandler
from heron_compat_streamparse.components.spout import JavaSpout, ReliableSpout, ShellSpout, Spout
from heron_compat_streamparse.hosting.tuples import Tuple
from heron_compat_streamparse.served.streamparse import bolt, component, dsl, spout, storm, thrift
from heron_compat_streamparse.specs.stream import Grouping, Stream
from heron_compat_streamparse.topology import Topology

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Grouping",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "Tuple",
    "bolt",
    "component",
    "dsl",
    "spout",
    "storm",
    "thrift",
]
