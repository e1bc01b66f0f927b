"""The driver meets the contract of packings."""

from __future__ import annotations

from heron_packing_ffd import FirstFitDecreasingPacking
from heron_testing.contracts.packing import PackingContract


class TestFirstFitDecreasingPacking(PackingContract):
    """The whole suite; this driver needs no options."""

    name = "ffd"
    driver_class = FirstFitDecreasingPacking
