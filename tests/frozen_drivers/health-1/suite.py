"""The contract of health policies, kept by the driver ``queues``."""

from __future__ import annotations

from heron_health_queues import QueuePolicy
from heron_testing.contracts.health import HealthPolicyContract


class TestQueuePolicy(HealthPolicyContract):
    name = "queues"
    driver_class = QueuePolicy
