"""A job that ended by itself while a command killed it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

import pytest

from heron.driver_kit.child_processes import ProcessIdentity
from heron.spi.options import decode_options
from heron_scheduler_kit import supervised_scheduler
from heron_scheduler_kit.job_folder import JobFolder
from heron_scheduler_kit.options import SupervisedOptions
from heron_scheduler_kit.process_list import ProcessList
from heron_scheduler_kit.supervised_scheduler import SupervisedScheduler


class Known(SupervisedScheduler):
    """Has no jobs but those that a test makes."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset()
    options_type: ClassVar[type] = SupervisedOptions
    supervisor: ClassVar[str] = "none"

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, SupervisedOptions, "scheduler"))


def test_kill_waits_for_a_supervisor_that_has_removed_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its interpreter needs a moment more: here until the scheduler has looked twice."""
    answer = {"over": False, "handle": "", "containers": []}
    monkeypatch.setattr(supervised_scheduler, "request", lambda *_: answer)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as supervisor:
        folder = JobFolder(tmp_path / "t")
        folder.path.mkdir()
        folder.job_file.write_bytes(b"{}")
        ProcessList(ProcessIdentity.of(supervisor.pid), ()).write(folder)
        scheduler = Known.open({"root": str(tmp_path)})
        scheduler.status("t")
        shutil.rmtree(folder.path)
        looks = 0

        def look() -> None:
            nonlocal looks
            looks += 1
            if looks == 2:
                supervisor.communicate()

        monkeypatch.setattr(scheduler, "_reap", look)
        scheduler.kill("t")
        assert supervisor.poll() == 0
