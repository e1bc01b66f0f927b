"""Round robin meets the contract of packings."""

from __future__ import annotations

from heron.testing.contracts.packing import PackingContract
from heron_packing_roundrobin import RoundRobinPacking


class TestRoundRobinPacking(PackingContract):
    """The whole suite; this driver needs no options."""

    name = "roundrobin"
    driver_class = RoundRobinPacking
