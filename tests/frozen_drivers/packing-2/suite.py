"""The contract of packings, kept by the driver ``spread``."""

from __future__ import annotations

from heron_packing_spread import SpreadPacking
from heron_testing.contracts.packing import PackingContract


class TestSpreadPacking(PackingContract):
    name = "spread"
    driver_class = SpreadPacking
