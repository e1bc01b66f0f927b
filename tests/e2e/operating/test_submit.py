"""Submitted topologies: they outlive the command and its terminal, are listed, and end when killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until, wait_until_grown

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

START_S = 60.0
GONE_S = 15.0

TERMINAL = (
    sys.executable,
    "-c",
    "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))",
)

Entry = dict[str, object]


def the_error(entry: Entry) -> str:
    """Return its only error."""
    errors = entry["errors"]
    assert isinstance(errors, list)
    (error,) = errors
    return str(error)


def submitted(sandbox: Sandbox, *options: str, where: str = "local", wrapper: tuple[str, ...] = ()) -> HeronRun:
    """Submit the endless topology."""
    run = sandbox.start("steady.py", *options, command=f"submit {where}", wrapper=wrapper)
    assert run.wait() == 0, run.all_output
    return run


def listed(sandbox: Sandbox, *words: str) -> list[Entry]:
    """Return the entries of `heron list`."""
    found: list[Entry] = json.loads(sandbox.heron("list", "--json", *words).stdout)
    return found


def becomes(sandbox: Sandbox, state: str, name: str = "steady") -> Entry:
    """Wait until the topology is in that state; return its entry."""
    seen: list[Entry] = []

    def look() -> bool:
        seen[:] = [each for each in listed(sandbox) if each["name"] == name]
        return bool(seen) and seen[0]["state"] == state

    try:
        wait_until(look, START_S, f"{name} {state}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {seen}\n{sandbox.log_text('*.log')[-4000:]}") from None  # noqa: EM102
    return seen[0]


def seen(run: HeronRun) -> int:
    """Return the last count that the bolt has written; 0 before the first."""
    try:
        words = (run.out / "progress").read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return 0
    return int(words[1]) if len(words) == 2 else 0  # the line may be incomplete


def counts(run: HeronRun) -> None:
    """Wait until it has counted more than now."""
    wait_until_grown(lambda: seen(run), START_S, "further counts")


@pytest.mark.guarantee
def test_a_submitted_topology_outlives_its_terminal_and_is_killed_by_name(sandbox: Sandbox) -> None:
    """None of its processes has a terminal that could hang up; after kill only logs and the report are left.

    Guarantee: a submitted topology outlives its terminal, and `heron kill` leaves only its logs.
    """
    run = submitted(sandbox, where="local/ads/prod", wrapper=TERMINAL)
    assert "steady submitted as steady-" in run.stdout
    counts(run)
    (supervisor,) = run.processes("supervisor")
    family = [supervisor, *supervisor.children(recursive=True)]
    assert len(family) > 8
    assert {each.terminal() for each in family} == {None}
    assert {os.getsid(each.pid) for each in family} == {supervisor.pid}
    supervisor.send_signal(signal.SIGHUP)  # sent although no terminal could
    counts(run)
    entry = becomes(sandbox, "running")
    assert (entry["role"], entry["env"], entry["containers"], entry["tasks"]) == ("ads", "prod", 3, 4)
    assert listed(sandbox, "--role", "ads") == [entry]
    assert not listed(sandbox, "--role", "other")
    second = sandbox.start("steady.py", command="submit local")
    assert second.wait() == 2
    assert "topology 'steady' is already running (id steady-" in second.stderr
    assert "stop it, or give this one another name (`heron kill steady` stops it)" in second.stderr
    counts(run)
    killed = json.loads(sandbox.heron("kill", "steady", "--json").stdout)
    assert (killed["manner"], killed["left"]) == ("asked", [])
    assert not sandbox.remaining()
    assert Path(killed["logs"], "count-4.log").exists()
    ended = becomes(sandbox, "killed")
    assert (ended["role"], ended["id"], ended["errors"]) == ("ads", entry["id"], [])


def test_a_finished_topology_is_listed_and_its_name_is_free(sandbox: Sandbox) -> None:
    """No process waits for its end, so the next command cleans up; the result is kept for a day."""
    run = submitted(sandbox)
    counts(run)
    (run.out / "stop").touch()
    entry = becomes(sandbox, "finished")
    again = submitted(sandbox)
    counts(again)
    now = becomes(sandbox, "running")
    assert now["id"] != entry["id"]
    assert "removed what was left" not in again.stderr, "it had ended in order"
    sandbox.heron("kill", "steady")


@pytest.mark.starts_nothing
@pytest.mark.parametrize(
    ("where", "output"),
    [
        ("local/a b", "role 'a b' is refused; use 1 to 64 of the characters"),
        ("local/../../etc", "not of the form PROFILE[/ROLE[/ENV]]"),
        ("local/me/pröd", "environment 'pröd' is refused"),
        ("local/-x", "do not begin with - or ."),
        ("lokal", "no profile 'lokal' (nearest: 'local')"),
        ("/me", "not of the form PROFILE[/ROLE[/ENV]]"),
    ],
)
def test_invalid_targets_are_refused_before_any_change(sandbox: Sandbox, where: str, output: str) -> None:
    """They become parts of lists, events and paths."""
    file = Path(__file__).parents[1] / "topologies" / "steady.py"
    error = sandbox.heron("submit", where, str(file), "--", "--out", "x", code=2).stderr
    assert output in error
    assert error.count("\n") == 1
    assert not sandbox.remaining()


@pytest.mark.starts_nothing
def test_a_dry_run_shows_the_plan_and_changes_nothing(sandbox: Sandbox) -> None:
    """The dry run uses the same file, profile and arguments as the submission."""
    run = sandbox.start("steady.py", "--dry-run", "--json", command="submit local")
    assert run.wait() == 0, run.all_output
    assert json.loads(run.stdout)["topology"] == "steady"
    assert not listed(sandbox)
    assert not (sandbox.home / ".heron" / "logs").exists()


def test_a_topology_submitted_deactivated_waits_for_its_activation(sandbox: Sandbox) -> None:
    """It is placed and connected, but its spouts are not called until then."""
    run = submitted(sandbox, "--deactivated")
    becomes(sandbox, "paused")
    wait_until((run.out / "progress").exists, START_S, "a first tick")
    assert not seen(run)
    sandbox.heron("activate", "steady")
    counts(run)
    becomes(sandbox, "running")
    sandbox.heron("kill", "steady")


def test_a_starting_topology_can_be_killed(sandbox: Sandbox) -> None:
    """There is no topology manager to ask yet, so its scheduler ends it."""
    submitted(sandbox)
    sandbox.heron("kill", "steady")
    assert not sandbox.remaining()


def test_a_topology_whose_manager_hangs_can_be_killed(sandbox: Sandbox) -> None:
    """The command says that it used force, and why."""
    run = submitted(sandbox)
    counts(run)
    (tmanager,) = run.processes("tmanager")
    tmanager.suspend()
    killed = json.loads(sandbox.heron("kill", "steady", "--json").stdout)
    assert killed["manner"] == "forced"
    assert "did not answer" in killed["why"]
    assert not sandbox.remaining()
    assert the_error(becomes(sandbox, "killed")).startswith("killed by a command, by force: ")


def test_the_next_list_cleans_up_after_a_killed_run_command(sandbox: Sandbox) -> None:
    """kill -9 of `heron run`: cleaning up does not need another run with that name."""
    run = sandbox.start("steady.py")
    run.until((run.out / "progress").exists, "tuples")
    run.process.kill()
    run.process.wait()
    wait_until(lambda: not any(each.startswith("process") for each in sandbox.remaining()), GONE_S, "no process")
    doctor = json.loads(sandbox.heron("doctor", "--json").stdout)
    assert ("topologies", "warning", "heron kill steady") in [
        (each["check"], each["level"], each["remedy"]) for each in doctor
    ]
    sandbox.submits = True
    done = sandbox.heron("list")
    assert "removed what was left of topology 'steady'" in done.stderr
    assert "killed" in done.stdout
    assert not sandbox.remaining()


@pytest.mark.guarantee
def test_a_container_refuses_a_package_that_was_changed_in_the_store(sandbox: Sandbox) -> None:
    """Nothing of the package is unpacked; `heron list` gives the reason.

    Guarantee: a container refuses a package that was changed in the store.
    """
    run = submitted(sandbox)
    counts(run)
    (package,) = (sandbox.home / ".heron" / "packages").glob("*.tar.gz")
    package.write_bytes(package.read_bytes() + b"more")
    (executor,) = run.processes("executor", "c1.json")
    executor.kill()
    wait_until(lambda: "SHA-256" in str(becomes(sandbox, "running")["errors"]), START_S, "the reason")
    error = the_error(becomes(sandbox, "running"))
    assert error.startswith("container 1: exit code 1")
    assert "it was changed, submit the topology again" in error
    sandbox.heron("kill", "steady")


def test_a_changed_state_node_is_named_and_can_be_removed(sandbox: Sandbox) -> None:
    """The entry names the node, and `heron kill` still ends the processes."""
    run = submitted(sandbox)
    counts(run)
    state = sandbox.home / ".heron" / "state"
    (state / "executionstate" / "steady").write_text("by hand", encoding="utf-8")
    entry = becomes(sandbox, "garbled")
    assert "executionstate/steady" in str(entry["errors"])
    doctor = json.loads(sandbox.heron("doctor", "--json", code=1).stdout)
    assert "heron kill steady" in [each["remedy"] for each in doctor]
    sandbox.heron("kill", "steady")
    assert not sandbox.remaining(), "the copy of that node still names its package"
    assert becomes(sandbox, "killed")["id"]


@pytest.mark.starts_nothing
def test_kill_of_an_unknown_name_lists_the_known_ones(sandbox: Sandbox) -> None:
    """A misspelt name must be reported."""
    assert "no topology 'stedy' in profile 'local'; there are: none" in sandbox.heron("kill", "stedy", code=2).stderr


@pytest.mark.starts_nothing
def test_the_shell_completes_profiles_and_topologies(sandbox: Sandbox) -> None:
    """The script is click's own; it looks up the names when the shell asks."""
    assert "_HERON_COMPLETE" in sandbox.heron("completion", "bash").stdout
    environ = {**sandbox.env, "_HERON_COMPLETE": "bash_complete", "COMP_WORDS": "heron list lo", "COMP_CWORD": "2"}
    heron = Path(sys.executable).with_name("heron")
    done = subprocess.run([str(heron)], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout == "plain,local\n"
