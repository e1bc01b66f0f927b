"""Round robin meets the contract of packings."""

from __future__ import annotations

from heron_packing_roundrobin import RoundRobinPacking
from heron_testing.contracts.packing import PackingContract


class TestRoundRobinPacking(PackingContract):
    """The whole suite; this driver needs no options."""

    name = "roundrobin"
    driver_class = RoundRobinPacking
