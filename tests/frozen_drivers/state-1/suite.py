"""The contract of state backends, kept by the driver ``dicts``."""

from __future__ import annotations

from heron_state_dicts import DictStateBackend
from heron_testing.contracts.state import StateBackendContract


class TestDictStateBackend(StateBackendContract):
    name = "dicts"
    driver_class = DictStateBackend
