"""Topologies, built by calls or written as classes."""

from __future__ import annotations

from heron.api.builder import TopologyBuilder
from heron.api.topology import Topology, TopologyType

__all__ = ["Topology", "TopologyBuilder", "TopologyType"]
