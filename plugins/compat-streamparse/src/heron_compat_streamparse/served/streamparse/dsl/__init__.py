"""Topologies."""

from __future__ import annotations

from heron_compat_streamparse.specs.stream import Grouping, Stream
from heron_compat_streamparse.topology import Topology

__all__ = ["Grouping", "Stream", "Topology"]
