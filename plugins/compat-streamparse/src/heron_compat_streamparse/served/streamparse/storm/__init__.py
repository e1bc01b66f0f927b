"""Spouts and bolts."""

from __future__ import annotations

from heron_compat_streamparse.components.batching_bolt import BatchingBolt, TicklessBatchingBolt
from heron_compat_streamparse.components.bolt import Bolt, JavaBolt, ShellBolt
from heron_compat_streamparse.components.component import Component, StormHandler
from heron_compat_streamparse.components.spout import JavaSpout, ReliableSpout, ShellSpout, Spout
from heron_compat_streamparse.hosting.tuples import Tuple

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Component",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "TicklessBatchingBolt",
    "Tuple",
]
