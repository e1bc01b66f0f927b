"""A network that is cut in each phase of an update, and at a commit of a checkpoint."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest

from committed_lines import PARTITIONS, check_committed, commits
from held_instants import HeldInstants
from heron.clock import monotonic_s
from test_on_network import QUICK, Crossing, Status, write_profile

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox
    from heron_testing_servers.network import Network


OUTAGE_S = 3.0  # longer than the time after which a silent link is replaced


def phase_of(status: Status) -> str:
    """Return the phase of the update."""
    return str((status["update"] or {}).get("phase", ""))


def ask(crossing: Crossing, split: int) -> HeronRun:
    """Start the update to that many tasks."""
    words = ("update", "crossing", "--profile", "net", "--component-parallelism", f"split:{split}", "--json")
    return crossing.sandbox.start_command(*words)


def test_a_cut_in_each_phase_delays_the_update(sandbox: Sandbox, network: Network) -> None:
    """In PREPARE the new task cannot report, and data flows. In SWITCH the removed task lacks data of one spout."""
    crossing = Crossing(sandbox, network, QUICK)
    with network.cut(0, 1), network.cut(0, 2), network.cut(0, 3):
        asked = ask(crossing, 3)
        crossing.until_status(lambda status: phase_of(status) == "prepare", "the first phase")
        crossing.pass_time(OUTAGE_S)
        assert phase_of(crossing.status()) == "prepare"
        crossing.flows("in PREPARE")
    assert asked.wait() == 0, asked.all_output
    (added,) = json.loads(asked.stdout)["added"]
    host = added["container_id"]
    with network.cut(host, 2 if host == 1 else 1):
        asked = ask(crossing, 2)
        crossing.until_status(lambda status: phase_of(status) == "switch", "the second phase")
        crossing.pass_time(OUTAGE_S)
        assert phase_of(crossing.status()) == "switch"
    assert asked.wait() == 0, asked.all_output
    assert [each["task_id"] for each in json.loads(asked.stdout)["removed"]] == [added["task_id"]]
    crossing.flows("after the update")
    crossing.complete()


@pytest.mark.parametrize("links", [((0, 1), (0, 2)), ((1, 2),)], ids=["to the topology manager", "of the data"])
def test_a_cut_at_a_commit_leaves_the_output_exact(
    sandbox: Sandbox, network: Network, links: tuple[tuple[int, int], ...]
) -> None:
    """The checkpoint is complete, and the tasks cannot report that they have committed it, or lose data."""
    instants = HeldInstants(sandbox)
    write_profile(sandbox, network, QUICK)
    run = sandbox.start("exactly_once.py", "--profile", "net", args=("--interval", "1.0"))
    commits(run, "at the start")
    instants.hold("post_save")
    instants.reached(run, "post_save")
    with contextlib.ExitStack() as cuts:
        for link in links:
            cuts.enter_context(network.cut(*link))
        instants.release("post_save")
        until_s = monotonic_s() + OUTAGE_S
        run.until(lambda: monotonic_s() > until_s, "the outage")
    commits(run, "after the outage")
    (run.out / "stop").touch()
    run.finished()
    assert check_committed(run.out, PARTITIONS) > 0
