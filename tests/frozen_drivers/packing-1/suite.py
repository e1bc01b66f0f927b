"""The contract of packings, kept by the drivers ``spread`` and ``tight``."""

from __future__ import annotations

from heron_packing_spread import SpreadPacking
from heron_packing_tight import TightPacking
from heron_testing.contracts.packing import PackingContract


class TestSpreadPacking(PackingContract):
    name = "spread"
    driver_class = SpreadPacking


class TestTightPacking(PackingContract):
    name = "tight"
    driver_class = TightPacking
