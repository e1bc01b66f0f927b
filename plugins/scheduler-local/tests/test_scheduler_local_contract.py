"""The scheduler contract on processes of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron_scheduler_local.scheduler import LocalScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, SchedulerContract


class TestLocalScheduler(SchedulerContract):
    name = "local"
    driver_class = LocalScheduler

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"root": str(tmp_path / "jobs"), "executor": [*FAKE_EXECUTOR], "stop_grace_s": 1.0}
