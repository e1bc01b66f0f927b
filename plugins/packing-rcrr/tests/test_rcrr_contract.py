"""The driver meets the contract of packings."""

from __future__ import annotations

from heron_packing_rcrr import ResourceCompliantPacking
from heron_testing.contracts.packing import PackingContract


class TestResourceCompliantPacking(PackingContract):
    """The whole suite; this driver needs no options."""

    name = "rcrr"
    driver_class = ResourceCompliantPacking
