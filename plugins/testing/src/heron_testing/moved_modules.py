"""The former paths of modules of this package. Delete this module in the version after 0.1."""

from __future__ import annotations

__all__ = ["MOVED"]

_CONTRACTS = "heron_testing.contracts"
_FAMILIES = ("checkpoint", "metricsink", "scheduler", "statemgr", "store", "uploader")
_PARTS = (
    *("health_topology", "packing_reference", "scheduler_bench", "second_process", "state_calls"),
    *("statemgr_first_use", "store_model", "store_writers", "uploader_listing", "uploader_weight"),
)

MOVED = {f"{_CONTRACTS}.{name}_faults": f"{_CONTRACTS}.fault_cases.{name}_faults" for name in _FAMILIES}
MOVED |= {f"{_CONTRACTS}.{name}": f"{_CONTRACTS}.parts.{name}" for name in _PARTS}
"""The present path of each path that moved."""
