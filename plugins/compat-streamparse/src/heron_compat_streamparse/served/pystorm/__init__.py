"""pystorm as Heron serves it: the classes of streamparse."""

from __future__ import annotations

from heron_compat_streamparse.components.batching_bolt import BatchingBolt, TicklessBatchingBolt
from heron_compat_streamparse.components.bolt import Bolt
from heron_compat_streamparse.components.component import Component
from heron_compat_streamparse.components.spout import ReliableSpout, Spout
from heron_compat_streamparse.hosting.tuples import Tuple
from heron_compat_streamparse.served.pystorm import bolt, component, exceptions, spout

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Component",
    "ReliableSpout",
    "Spout",
    "TicklessBatchingBolt",
    "Tuple",
    "bolt",
    "component",
    "exceptions",
    "spout",
]
