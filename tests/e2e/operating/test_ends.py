"""Every end has its exit code and report, and leaves nothing within five seconds."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

GONE_S = 5.0


def started(sandbox: Sandbox, *options: str) -> HeronRun:
    """A run whose tuples flow."""
    run = sandbox.start("steady.py", *options)
    run.until((run.out / "progress").exists, "tuples")
    return run


@pytest.mark.parametrize("to", ["the command", pytest.param("its process group", marks=pytest.mark.guarantee)])
def test_ctrl_c_stops_the_run_cleanly_and_only_once(sandbox: Sandbox, to: str) -> None:
    """Exit code 130. A second Ctrl-C during the stop changes nothing; a terminal sends it to the process group.

    Guarantee: Ctrl-C ends a run once, with exit code 130, and nothing is left.
    """
    run = started(sandbox)
    send = os.killpg if to == "its process group" else os.kill
    send(run.process.pid, signal.SIGINT)
    run.until(lambda: not run.processes("instance") or run.process.poll() is not None, "the instances leave")
    if run.process.poll() is None:
        send(run.process.pid, signal.SIGINT)
    assert run.wait(GONE_S) == 130, run.all_output
    assert run.report().state == "killed"
    assert run.stderr.count("interrupted") == 1, run.all_output
    assert "Traceback" not in run.stdout + run.stderr
    assert not sandbox.remaining()


def test_a_timeout_kills_the_run_and_fails(sandbox: Sandbox) -> None:
    """Exit code 1, because the topology did not finish. The report has the counts so far."""
    run = started(sandbox, "--timeout", "8")
    assert run.wait(60.0) == 1, run.all_output
    report = run.report()
    assert report.state == "killed"
    assert report.elapsed_s >= 8
    assert "count" in report.components
    assert "its --timeout is up" in run.stderr
    assert not sandbox.remaining()


@pytest.mark.starts_nothing
def test_ctrl_c_before_anything_runs_changes_nothing(sandbox: Sandbox) -> None:
    """This happens while the author's file is being loaded."""
    file = sandbox.root / "slow.py"
    file.write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n", encoding="utf-8")
    run = sandbox.start(file)
    run.until((sandbox.root / "loading").exists, "the file being loaded")
    run.process.send_signal(signal.SIGINT)
    assert run.wait(GONE_S) == 130, run.all_output
    assert "nothing was started" in run.stderr
    assert not sandbox.remaining()


@pytest.mark.parametrize("role", ["command", "supervisor"])
def test_the_command_or_the_supervisor_may_be_killed(sandbox: Sandbox, role: str) -> None:
    """kill -9 of `heron run` or of its supervisor: all processes end, and the next run removes the remaining files."""
    run = started(sandbox)
    if role == "command":
        run.process.kill()
        run.process.wait()
    else:
        run.the("supervisor").kill()
        assert run.wait(20.0) == 1, run.all_output
        assert run.report().state == "failed"
        assert not sandbox.remaining()
    wait_until(lambda: not processes_or_temporary(sandbox), GONE_S, "nothing running")

    again = sandbox.start("steady.py")
    (again.out / "stop").touch()
    again.finished()
    assert ("removed what was left" in again.stderr) == (role == "command"), again.all_output


def processes_or_temporary(sandbox: Sandbox) -> list[str]:
    """Return the remaining processes, sockets and temporary files."""
    return [each for each in sandbox.remaining() if each.startswith(("process", "temporary"))]


@pytest.mark.parametrize("sent", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.guarantee)])
def test_components_that_do_not_stop_are_killed(sandbox: Sandbox, sent: signal.Signals) -> None:
    """One component blocks for an hour, one spins and ignores signals; the programs that they started end too.

    Guarantee: the processes of a killed `heron run` end, also a component that does not stop, with its programs.
    """
    run = sandbox.start("stubborn.py")
    run.until((run.out / "progress").exists, "the bolt to spin")
    run.process.send_signal(sent)
    wait_until(lambda: not processes_or_temporary(sandbox), GONE_S, f"{processes_or_temporary(sandbox)}")
    if sent is signal.SIGINT:
        assert run.wait() == 130, run.all_output
        assert not sandbox.remaining()
    else:  # the next run removes the remaining files
        assert run.wait() == -signal.SIGKILL
        again = sandbox.start("stubborn.py", "--timeout", "0.5")
        assert again.wait() == 1, again.all_output


def test_two_topologies_may_run_at_once_but_not_with_one_name(sandbox: Sandbox) -> None:
    """Topologies with different names are independent; a running name is refused."""
    first = sandbox.start("steady.py")
    second = sandbox.start("steady.py", args=("--name", "unsteady"))
    for run in (first, second):
        run.until((run.out / "progress").exists, "tuples")
    third = sandbox.run("steady.py")
    assert third.process.returncode == 2, third.all_output
    assert "topology 'steady' is already running (id steady-" in third.stderr
    assert "stop it, or give this one another name" in third.stderr
    for run in (first, second):
        (run.out / "stop").touch()
    assert {run.finished().topology for run in (first, second)} == {"steady", "unsteady"}


def calls(run: HeronRun) -> int:
    """Return how often `next_tuple` of the spout was called that ends in its fourth call."""
    return len((run.out / "calls").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("mode", "interval_s", "form"),
    [
        ("ATMOST_ONCE", 0, "rows"),
        ("ATLEAST_ONCE", 0, "rows"),
        ("ATLEAST_ONCE", 0.3, "columns"),
        ("EFFECTIVELY_ONCE", 0.3, "rows"),
    ],
)
def test_a_spout_that_has_ended_is_not_called_also_after_its_death(
    sandbox: Sandbox, mode: str, interval_s: float, form: str
) -> None:
    """What its last call emitted counts. The end outlives the process: in the plan, or in a checkpoint."""
    run = sandbox.start("five_each.py", args=("--mode", mode, "--interval", str(interval_s), "--form", form))

    def has_ended() -> bool:
        tasks = sandbox.status("five_each")["tasks"]
        return any(task["component"] == "five" and task["state"] == "ended" for task in tasks)

    def complete() -> int:
        return int(sandbox.checkpoints("five_each")["complete"])

    run.until(lambda: (run.out / "calls").exists() and has_ended(), "the end of the spout")
    if interval_s:
        run.grows(complete, "a checkpoint with the end", by=1)
    killed = run.the("instance", "five-")
    killed.kill()
    run.until(
        lambda: [each.pid for each in run.processes("instance", "five-")] not in ([], [killed.pid]), "its restart"
    )
    run.until(has_ended, "its end again")
    (run.out / "stop").touch()
    run.finished()
    assert calls(run) == 4
    (numbers,) = run.results("keep").values()
    assert sorted(map(str, numbers)) == sorted(map(str, range(20)))
