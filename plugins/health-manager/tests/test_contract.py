"""The policies of this distribution keep the contract of the family."""

from __future__ import annotations

import pytest

from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.slo_policy import SloPolicy
from heron_testing.contracts.health import HealthPolicyContract


class TestDs2(HealthPolicyContract):
    """`ds2`."""

    name = "ds2"
    driver_class = Ds2Policy


class TestSlo(HealthPolicyContract):
    """`slo` with objectives of every kind."""

    name = "slo"
    driver_class = SloPolicy

    @pytest.fixture
    def options(self) -> dict[str, object]:
        """Objectives that a busy topology misses."""
        lines = ["throughput >= 90% of the source", "latency p99 <= 500 ms", "backlog drained in <= 5 min"]
        return {"objectives": [*lines, "containers <= 2000", "cost <= 3000"], "task_cost": 0.1}


class TestSloWithoutObjectives(HealthPolicyContract):
    """`slo` as it is without options."""

    name = "slo"
    driver_class = SloPolicy
