"""The contract of state managers, kept by the driver ``shared``."""

from __future__ import annotations

from pathlib import Path

import pytest
from heron_statemgr_shared import SharedStateManager
from heron_testing.contracts.statemgr import StateManagerContract
from heron_testing.faults import Faults, file_faults


class TestSharedStateManager(StateManagerContract):
    name = "shared"
    driver_class = SharedStateManager

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"folder": str(tmp_path / "state"), "poll_s": 0.05}

    @pytest.fixture
    def faults(self, tmp_path: Path) -> Faults:
        return file_faults(tmp_path / "state")
