"""Faults of a supervisor and of the files of a job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron.errors import ConfigError, SchedulerError
from heron.spi.scheduler import ContainerStatus, SchedulerState
from heron_scheduler_local.scheduler import LocalScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, Bench, runs
from heron_testing.waiting import wait_until

FORK_SERVER = b"heron.driver_kit.fork_server_loop"

OpenScheduler = Callable[..., LocalScheduler]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="heron-") as run_root:
        yield Bench(tmp_path, Path(run_root))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a path for job folders that is longer than a socket path may be."""
    return tmp_path / ("deep" * 30) / "jobs"


@pytest.fixture
def open_scheduler(root: Path, bench: Bench) -> Iterator[OpenScheduler]:
    opened: list[LocalScheduler] = []

    def open_one(**options: object) -> LocalScheduler:
        chosen = {"root": str(root), "executor": [*FAKE_EXECUTOR], "stop_grace_s": 1.0, **options}
        opened.append(LocalScheduler.open(chosen))
        return opened[-1]

    yield open_one
    for scheduler in opened:
        for topology in bench.jobs:
            scheduler.kill(topology)


def _supervisor(root: Path, topology: str) -> int:
    return int(json.loads((root / topology / "processes.json").read_bytes())["supervisor"]["pid"])


def test_the_executors_of_a_killed_supervisor_end(open_scheduler: OpenScheduler, root: Path, bench: Bench) -> None:
    """After kill -9 of the supervisor no process restarts or stops these executors, so they must end."""
    scheduler = open_scheduler()
    scheduler.schedule(bench.job("t", "serve", "serve"))
    executors = [bench.wait("t", number) for number in range(2)]
    os.kill(_supervisor(root, "t"), signal.SIGKILL)
    wait_until(lambda: not any(runs(each.pid) for each in executors), 10, "the executors are gone")
    status = scheduler.status("t")
    assert status.state is SchedulerState.FAILED
    assert [each.running for each in status.containers] == [False, False]
    assert "supervisor" in status.containers[0].last_error


def _children(parent: int) -> dict[int, bytes]:
    """Return the command lines of the children of a process, by id."""
    ids = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
    return {int(each): Path(f"/proc/{each}/cmdline").read_bytes() for each in ids}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has fork servers")
def test_executors_are_forked_and_a_killed_fork_server_harms_none(
    open_scheduler: OpenScheduler, root: Path, bench: Bench
) -> None:
    """It has the imports once for all containers. Without it, the next executor is a new interpreter."""
    scheduler = open_scheduler()
    scheduler.schedule(bench.job("t", "serve", "serve"))
    first, second = (bench.wait("t", number) for number in range(2))
    children = _children(_supervisor(root, "t"))
    (server,) = (pid for pid, command in children.items() if FORK_SERVER in command)
    assert {*children} == {first.pid, second.pid, server}
    os.kill(server, signal.SIGKILL)
    os.kill(first.pid, signal.SIGKILL)
    successor = bench.wait("t", 0, 2)
    assert runs(second.pid)
    log = (bench.log_dir("t") / "supervisor.log").read_text(encoding="utf-8")
    assert log.count("processes start as new interpreters from now on: ") == 1, "the first ones were forked"
    scheduler.kill("t")
    assert not runs(successor.pid)


@pytest.mark.parametrize("files", [[], ["lock"], ["lock", "c0.json"], ["lock", "c0.json", "job.json"]])
def test_kill_removes_the_files_of_an_interrupted_schedule(
    open_scheduler: OpenScheduler, root: Path, files: list[str]
) -> None:
    """The command was killed before the supervisor started: any file may be missing, also the lock."""
    (root / "t").mkdir(parents=True)
    for name in files:
        (root / "t" / name).write_text("{}", encoding="utf-8")
    scheduler = open_scheduler()
    assert scheduler.status("t").state is not SchedulerState.RUNNING
    scheduler.kill("t")
    assert not (root / "t").exists()
    assert scheduler.status("t").state is SchedulerState.ABSENT


def test_an_interrupted_schedule_leaves_no_job(open_scheduler: OpenScheduler, root: Path, bench: Bench) -> None:
    """The supervisor already works when the command is interrupted; it ends with all that it has started."""
    scheduler = open_scheduler()

    def look() -> None:
        raise KeyboardInterrupt

    scheduler.follow(look)
    job = bench.job("t", "serve")
    with pytest.raises(KeyboardInterrupt):
        scheduler.schedule(job)
    assert not (root / "t").exists()
    assert not Path(job.containers[0].run_dir).exists()
    open_scheduler().schedule(bench.job("t", "serve"))


def test_a_dead_supervisors_job_is_cleaned_by_the_next_schedule(
    open_scheduler: OpenScheduler, root: Path, bench: Bench
) -> None:
    """The name is free at once, also while an executor of the dead job ignores SIGTERM."""
    scheduler = open_scheduler()
    scheduler.schedule(bench.job("t", "deaf"))
    old = bench.wait("t", 0)
    os.kill(_supervisor(root, "t"), signal.SIGKILL)
    scheduler.schedule(bench.job("t", "serve"))
    assert not runs(old.pid)
    wait_until(lambda: bench.wait("t", 0).pid != old.pid, 20, "the new executor is up")
    assert scheduler.status("t").state is SchedulerState.RUNNING


def test_kill_ends_a_job_whose_supervisor_hangs(open_scheduler: OpenScheduler, root: Path, bench: Bench) -> None:
    """A stopped supervisor does not answer; the job must end nevertheless."""
    scheduler = open_scheduler()
    scheduler.schedule(bench.job("t", "serve", "parent"))
    executors = [bench.wait("t", number) for number in range(2)]
    os.kill(_supervisor(root, "t"), signal.SIGSTOP)
    scheduler.kill("t")
    assert [runs(pid) for each in executors for pid in (each.pid, each.child)] == [False] * 4
    assert not bench.run_dir("t").exists()
    assert not (root / "t").exists()


def test_a_job_that_ended_leaves_no_file(open_scheduler: OpenScheduler, root: Path, bench: Bench) -> None:
    """Only logs stay."""
    scheduler = open_scheduler()
    scheduler.schedule(bench.job("t", "done", "done"))
    wait_until(lambda: not (root / "t").exists(), 20, "the job folder is gone")
    assert list(root.iterdir()) == []
    assert not bench.run_dir("t").exists()
    assert (bench.log_dir("t") / "supervisor.log").exists()


def test_a_command_that_does_not_exist_is_refused_at_once(
    open_scheduler: OpenScheduler, root: Path, bench: Bench
) -> None:
    """The mistake is in the profile: the error names the command, and nothing was started."""
    scheduler = open_scheduler(executor=["/no/such/executor"])
    with pytest.raises(SchedulerError, match="/no/such/executor"):
        scheduler.schedule(bench.job("t", "serve"))
    assert list(root.iterdir()) == []
    assert not bench.run_dir("t").exists()


def test_a_launcher_becomes_the_executor_of_its_container(open_scheduler: OpenScheduler, bench: Bench) -> None:
    """The supervisor restarts and ends such executors as others."""
    scheduler = open_scheduler(launcher=["env", "STAGE=stage-{container}"])
    scheduler.schedule(bench.job("t", "serve", "serve"))
    executors = [bench.wait("t", number) for number in range(2)]
    for number, each in enumerate(executors):
        assert f"STAGE=stage-{number}" in Path(f"/proc/{each.pid}/environ").read_text(encoding="utf-8").split("\0")
    scheduler.kill("t")
    assert not any(runs(each.pid) for each in executors)


def test_the_status_shows_the_stderr_of_an_executor_without_a_log(open_scheduler: OpenScheduler, bench: Bench) -> None:
    """An executor may fail before it opens its log."""
    failing = [sys.executable, "-P", "-c", "raise SystemExit('no module named x')"]
    scheduler = open_scheduler(executor=failing)
    scheduler.schedule(bench.job("t", "serve"))
    wait_until(lambda: scheduler.status("t").containers[0].last_error, 20, "an attempt failed")
    assert scheduler.status("t").containers[0].last_error == "exit code 1: no module named x"


def test_a_run_directory_that_others_may_enter_is_refused(open_scheduler: OpenScheduler, bench: Bench) -> None:
    """Local sockets have no keys: the directory protects them."""
    bench.run_dir("t").mkdir(mode=0o755)
    with pytest.raises(SchedulerError, match="0755"):
        open_scheduler().schedule(bench.job("t", "serve"))
    assert bench.run_dir("t").exists()


def test_job_files_are_private(open_scheduler: OpenScheduler, root: Path, bench: Bench) -> None:
    """Specs hold secrets, and everybody who reaches the control socket can end the job."""
    scheduler = open_scheduler()
    scheduler.schedule(bench.job("t", "serve"))
    bench.wait("t", 0)
    assert (root / "t").stat().st_mode & 0o777 == 0o700
    files = {each.name: each.stat().st_mode & 0o777 for each in (root / "t").iterdir() if each.is_file()}
    assert set(files.values()) == {0o600}
    assert scheduler.links("t")[0].url == str(bench.log_dir("t"))


def test_an_update_whose_container_cannot_start_is_undone(open_scheduler: OpenScheduler, bench: Bench) -> None:
    """The first added container had started when the second failed: it must end, and no other one."""
    scheduler = open_scheduler()
    scheduler.schedule(bench.job("t", "serve", "serve"))
    before = [bench.wait("t", number).pid for number in range(2)]
    bad = bench.spec("u", 3)
    bench.run_dir("u").write_text("a file where a directory belongs")
    with pytest.raises(SchedulerError, match="container 3"):
        scheduler.update("t", [bench.spec("t", 2), bad], [1])
    assert [each.container_id for each in scheduler.status("t").containers] == [0, 1]
    assert [bench.wait("t", number).pid for number in range(2)] == before


def test_a_container_that_only_fails_is_given_up_until_a_restart(
    open_scheduler: OpenScheduler, root: Path, bench: Bench
) -> None:
    """The status has the reason and the remedy, the other containers go on, and a restart brings it back."""
    scheduler = open_scheduler(restart_limit=2, restart_backoff_max_s=0.1)
    scheduler.schedule(bench.job("t", "serve", "crash"))

    def given_up() -> ContainerStatus | None:
        container = scheduler.status("t").containers[1]
        return container if "given up" in container.last_error else None

    container = wait_until(given_up, 20, "container 1 is given up")
    assert container is not None
    assert (container.running, container.attempts) == (False, 3)
    assert "asked to crash; given up after 3 failures in a row" in container.last_error
    assert "(scheduler.restart_limit), `heron restart t 1` tries again" in container.last_error
    spec_file = root / "t" / "c1.json"
    spec_file.write_text(spec_file.read_text(encoding="utf-8").replace("crash", "serve"), encoding="utf-8")
    scheduler.restart("t", 1)
    bench.wait("t", 1, attempt=4)
    assert [each.running for each in scheduler.status("t").containers] == [True, True]


def test_a_negative_duration_is_refused() -> None:
    """A back-off below zero has no meaning; the error names the key."""
    with pytest.raises(ConfigError, match="restart_backoff_s"):
        LocalScheduler.open({"restart_backoff_s": -1.0})


def test_the_supervisor_imports_little() -> None:
    """Every run waits for it, so it imports no discovery of drivers, no msgspec and no ZeroMQ."""
    code = "import sys, heron_scheduler_kit.supervisor; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-P", "-c", code], text=True).split())
    assert "heron_scheduler_kit.supervisor" in loaded
    assert not loaded & {"msgspec", "zmq", "stevedore", "pluggy", "yaml", "click", "rich", "numpy", "tempfile"}
