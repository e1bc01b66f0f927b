"""The Spark executors keep the contract of the kit; processes of this machine stand in for Spark's tasks."""

from __future__ import annotations

import selectors
import sys
from pathlib import Path

import msgspec
import pytest

from heron_scheduler_kit.contract import ExecutorsContract
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_spark.settings.options import SparkOptions
from heron_scheduler_spark.spark_executors import SparkExecutors

SPARKLESS = Path(__file__).parent / "sparkless"
DRIVER = (sys.executable, "-P", str(SPARKLESS / "sparkless_driver.py"))


class TestSparkExecutors(ExecutorsContract):
    """Executors behind a driver process, without Spark."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HERON_TEST_FOLDER", str(tmp_path))

    def options(self) -> dict[str, object]:
        """Return the default options of the driver."""
        found = msgspec.to_builtins(SparkOptions())
        assert isinstance(found, dict)
        return found

    def make(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> SparkExecutors:
        """Return executors with the stand-in for the Spark driver."""
        return SparkExecutors(folder, record, selector, DRIVER)
