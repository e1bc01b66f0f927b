"""Topologies: built step by step, or written as classes."""

from __future__ import annotations

from heron.api.topology import Topology, TopologyBuilder, TopologyType

__all__ = ["Topology", "TopologyBuilder", "TopologyType"]
