"""The contract of checkpoint stores, kept by the driver ``table``."""

from __future__ import annotations

from pathlib import Path

import pytest
from heron_checkpoint_table import TableCheckpointStore
from heron_testing.contracts.checkpoint import CheckpointStoreContract
from heron_testing.faults import Faults, file_faults


class TestTableCheckpointStore(CheckpointStoreContract):
    name = "table"
    driver_class = TableCheckpointStore

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"folder": str(tmp_path / "checkpoints")}

    @pytest.fixture
    def faults(self, tmp_path: Path) -> Faults:
        return file_faults(tmp_path / "checkpoints")
