"""The contract of state managers on a real HDFS."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heron_statemgr_hdfs.driver import HdfsStateManager
from heron_testing.contracts.statemgr import StateManagerContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay


class TestHdfsStateManager(StateManagerContract):
    name = "hdfs"
    driver_class = HdfsStateManager

    @pytest.fixture
    def options(self, options: dict[str, object]) -> dict[str, object]:
        return options

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    @pytest.fixture
    def fresh_options(self, options: dict[str, object]) -> Sequence[dict[str, object]]:
        """A new root is a new store."""
        return [{**options, "root": f"{options['root']}-{number}"} for number in range(4)]  # each takes seconds
