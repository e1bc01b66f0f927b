"""Bolts."""

from __future__ import annotations

from heron_compat_streamparse.components.batching_bolt import BatchingBolt, TicklessBatchingBolt
from heron_compat_streamparse.components.bolt import Bolt, JavaBolt, ShellBolt

__all__ = ["BatchingBolt", "Bolt", "JavaBolt", "ShellBolt", "TicklessBatchingBolt"]
