"""The scheduler contract on the base for managed schedulers, with a folder in place of a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from folder_cluster import FolderScheduler

from heron.spi.driver import DriverRef
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract

_LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"


class TestFolderScheduler(SchedulerContract):
    name = "folder"
    driver_class = FolderScheduler

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        folder = tmp_path / "cluster"
        folder.mkdir()
        return {"folder": str(folder), "executor": [*FAKE_EXECUTOR], "stop_grace_s": 1.0}

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Bench]:
        state = DriverRef("statemgr", "localfs", _LOCALFS, {"root": str(tmp_path / "state")})
        with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
            yield Bench(tmp_path, Path(run_root), state)

    @pytest.fixture(autouse=True)
    def _second_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another process of the suite finds the driver."""
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("folder")))

    test_is_found_by_its_name = None  # type: ignore[assignment] # it is a part of the tests, without an entry point
