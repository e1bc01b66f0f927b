"""The scheduler contract on a real Slurm of three nodes."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron.spi.scheduler import Scheduler
from heron_scheduler_slurm.scheduler import SlurmScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, SchedulerContract
from heron_testing.faults import Faults
from heron_testing_servers.slurm import SlurmCluster

_RELAY = """\
#!/bin/sh
[ -e {lost} ] || exec {programs}/{name} "$@"
{programs}/{name} "$@" > /dev/null 2>&1
echo "Unable to contact slurm controller (connect failure)" >&2
exit 1
"""


class TestSlurmScheduler(SchedulerContract):
    name = "slurm"
    driver_class = SlurmScheduler
    uses_state = True
    lost: Path

    @pytest.fixture
    def options(
        self, tmp_path: Path, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[dict[str, object]]:
        for name, value in slurm.environment.items():
            monkeypatch.setenv(name, value)
        self.lost = tmp_path / "answers-are-lost"
        yield {
            "root": str(tmp_path / "jobs"),
            "programs": str(_programs(tmp_path / "programs", slurm, self.lost)),
            "executor": [*FAKE_EXECUTOR],
            "stop_grace_s": 1.0,
            "manager_cpu": 1,
            "manager_memory_mb": 64,
            "executor_memory_mb": 64,
        }
        slurm.start()
        slurm.clear()

    @pytest.fixture
    def faults(self, slurm: SlurmCluster) -> Faults:
        return Faults(
            away=lambda: _away(slurm), silent=lambda: _silent(slurm), answers_lost=lambda: _answers_lost(self.lost)
        )

    def test_a_restart_leaves_an_avoided_node(self, scheduler: Scheduler, bench: Bench) -> None:
        """Its new job excludes the node, and waits for the end of the old one. Slurm would refuse an unknown name."""
        scheduler.schedule(bench.job("t", "deaf"))
        bench.wait("t", 0)
        (before,) = scheduler.status("t").containers
        scheduler.avoid_hosts([before.host, "no-such-node"])
        scheduler.restart("t", 0)
        (now,) = scheduler.status("t").containers
        assert (before.host, now.host, now.running, now.attempts) == ("n1", "n2", True, 2)


def _programs(folder: Path, slurm: SlurmCluster, lost: Path) -> Path:
    """Make commands that act as Slurm's; their answers are lost while the file `lost` exists."""
    folder.mkdir()
    for name in ("sbatch", "scancel", "scontrol", "squeue"):
        path = folder / name
        path.write_text(_RELAY.format(lost=lost, programs=slurm.programs, name=name))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


@contextmanager
def _away(slurm: SlurmCluster) -> Iterator[None]:
    slurm.controller.kill()
    yield
    slurm.controller.start()
    # It saves its state some seconds late, so it may remember jobs that have ended, until it asks the nodes (100 s).
    slurm.clear()


@contextmanager
def _silent(slurm: SlurmCluster) -> Iterator[None]:
    os.kill(slurm.controller.pid, signal.SIGSTOP)
    yield
    os.kill(slurm.controller.pid, signal.SIGCONT)


@contextmanager
def _answers_lost(lost: Path) -> Iterator[None]:
    lost.touch()
    yield
    lost.unlink()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"partition": "nowhere"}, "invalid partition specified: nowhere.*set scheduler.partition.*sinfo"),
        (
            {"partition": "physics", "account": "chemistry"},
            "physics permits the accounts physics; scheduler.account is",
        ),
        ({"partition": "short", "time_limit": "10"}, "short permits jobs of 00:05:00; scheduler.time_limit is '10'"),
        ({"extra": ["--nodelist=n9"]}, "(?i)invalid node name"),
        ({"partition": "private"}, "Invalid user id.*ask the site for the right"),
        ({"programs": "/nowhere", "environment": ["SLURM_CONF"]}, "`scancel` cannot be run.*set scheduler.programs"),
        ({"root": "/proc/heron"}, "/proc/heron.*set scheduler.root to a folder that you may write"),
    ],
    ids=["partition", "account", "time limit", "node", "right", "command", "root"],
)
def test_a_check_names_what_is_wrong(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, object], words: str
) -> None:
    """`heron profiles check` says it in Slurm's words, with the option to correct."""
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    options = {"root": str(tmp_path / "jobs"), "programs": str(slurm.programs), **wrong}
    scheduler = SlurmScheduler.open(options)
    with pytest.raises(SchedulerError, match=words):
        scheduler.check(10.0)
