"""The local executors keep the contract of the kit."""

from __future__ import annotations

import selectors

from heron_scheduler_kit.contract import ExecutorsContract
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_local.local_executors import LocalExecutors


class TestLocalExecutors(ExecutorsContract):
    """Executors as children of this process."""

    def make(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> LocalExecutors:
        """Return executors of this machine."""
        return LocalExecutors(folder, record, selector)
