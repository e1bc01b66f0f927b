"""The contract of schedulers, kept by the driver ``nice``."""

from __future__ import annotations

from pathlib import Path

import pytest
from heron_scheduler_nice import NiceScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, SchedulerContract


class TestNiceScheduler(SchedulerContract):
    name = "nice"
    driver_class = NiceScheduler

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"root": str(tmp_path / "jobs"), "executor": [*FAKE_EXECUTOR], "stop_grace_s": 1.0, "niceness": 5}
