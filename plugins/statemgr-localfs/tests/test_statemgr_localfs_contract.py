"""The contract of state managers, with nodes in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_testing.contracts.statemgr import StateManagerContract
from heron_testing.faults import Faults, file_faults


class TestLocalFsStateManager(StateManagerContract):
    name = "localfs"
    driver_class = LocalFsStateManager

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"root": str(tmp_path / "state")}

    @pytest.fixture
    def faults(self, tmp_path: Path) -> Faults:
        return file_faults(tmp_path / "state")
