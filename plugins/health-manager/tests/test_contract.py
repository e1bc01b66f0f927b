"""The policies of this distribution keep the contract of the family."""

from __future__ import annotations

from heron_health_manager.ds2_policy import Ds2Policy
from heron_testing.contracts.health import HealthPolicyContract


class TestDs2(HealthPolicyContract):
    """`ds2`."""

    name = "ds2"
    driver_class = Ds2Policy
