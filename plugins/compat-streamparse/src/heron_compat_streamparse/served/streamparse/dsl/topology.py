"""Topologies."""

from __future__ import annotations

from heron_compat_streamparse.topology import Topology, TopologyType

__all__ = ["Topology", "TopologyType"]
