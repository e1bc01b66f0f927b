"""The cause of an executor's end: only its own failure counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from heron_scheduler_kit.executor_process import ExecutorProcess
from heron_testing.waiting import wait_until


def ended(folder: Path, code: str) -> tuple[str, bool]:
    """Return why an executor with this code ended, and whether it failed by itself."""
    spec = {"container_id": 1, "run_dir": str(folder / "run"), "log_dir": str(folder / "log")}
    executor = ExecutorProcess([sys.executable, "-c", code], folder / "c1.json", spec)
    reasons: list[str] = []

    def over() -> bool:
        reasons.extend(reason for reason in [executor.ended()] if reason is not None)
        return bool(reasons)

    wait_until(over, 20.0, "the executor has ended")
    return reasons[0], executor.at_fault


@pytest.mark.parametrize(
    ("code", "reason", "own"),
    [
        ("raise SystemExit(0)", "", False),
        ("raise SystemExit('no module named x')", "exit code 1: no module named x", True),
        ("raise SystemExit(75)", "exit code 75", False),  # the state or a disk is unavailable
        ("raise SystemExit(143)", "exit code 143", False),  # after SIGTERM
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL", False),
    ],
)
def test_only_an_exit_code_of_the_executor_is_its_fault(tmp_path: Path, code: str, reason: str, own: bool) -> None:
    """Only failures that another start cannot mend may make the supervisor give a container up."""
    assert ended(tmp_path, code) == (reason, own)
