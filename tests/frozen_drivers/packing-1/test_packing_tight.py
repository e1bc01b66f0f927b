"""The contract of packings, kept by the driver ``tight``."""

from __future__ import annotations

from heron_packing_tight import TightPacking
from heron_testing.contracts.packing import PackingContract


class TestTightPacking(PackingContract):
    name = "tight"
    driver_class = TightPacking
