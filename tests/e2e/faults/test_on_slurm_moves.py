"""Containers on a Slurm with three nodes that move: preempted, at a time limit, to other nodes, from wheels."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from committed_lines import PARTITIONS, check_committed, committed
from heron_testing.waiting import wait_until
from heron_testing_servers.slurm import NODES, SlurmCluster
from on_cluster import BACK_S, ClusterJournal
from slurm_place import SlurmHarm, SlurmPlace, fresh_slurm, resume
from wheel_archive import bare_interpreter, write_wheel_archive

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_OVER_S = 300.0
_LIMIT = ("--set", "scheduler.time_limit=3")  # minutes; Slurm warns 60 s before it, or up to 60 s earlier
_ALL = {0, 1, 2}
# A job that ends in order after the warning has failed for Slurm; one that is killed was preempted.
_TAKEN = r"job \d+ is (?:PREEMPTED|FAILED \(\w+\)); job \d+ is PENDING \("


@pytest.fixture
def place(sandbox: Sandbox, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmPlace]:
    """The complete, empty cluster, and the profile ``my-slurm`` that names it."""
    with fresh_slurm(sandbox, slurm, monkeypatch) as place:
        yield place


def _take_all_nodes(place: SlurmPlace) -> None:
    """Let a job of another partition take all nodes."""
    urgent = ("--partition=urgent", "--exclusive", "--nodes=3", "--job-name=urgent", "--output=/dev/null")
    place.slurm.ask("sbatch", *urgent, "--wrap", "sleep 600")


def _lose_all_nodes(place: SlurmPlace) -> None:
    """Lose the slurmd of the node that has all containers, while the others take none."""
    place.lose(NODES[0])


def _free_nodes(place: SlurmPlace) -> None:
    if "urgent" in place.slurm.jobs():
        place.slurm.ask("scancel", "--name=urgent")
    resume(place.slurm)


@pytest.mark.parametrize(
    ("harm", "drained", "reason"),
    [
        pytest.param(_take_all_nodes, (), _TAKEN, id="preempted"),
        # Slurm forgets a job of a lost node soon.
        pytest.param(_lose_all_nodes, NODES[1:], r"job \d+ is PENDING \((Nodes required .* DOWN|Priority)", id="lost"),
    ],
)
def test_a_container_without_a_place_says_why_and_comes_back(
    place: SlurmPlace, harm: Callable[[SlurmPlace], None], drained: tuple[str, ...], reason: str
) -> None:
    """Status and `heron explain` have what ended the job and what its successor waits for, in Slurm's words."""
    for node in drained:
        place.slurm.ask("scontrol", "update", f"nodename={node}", "state=DRAIN", "reason=test")
    journal = ClusterJournal(place.commands)

    def moves() -> set[int]:
        harm(place)

        def shown() -> bool:
            status = place.sandbox.start_command("status", "journal", "--profile", "my-slurm", "--timeout", "1")
            status.wait()
            words = f"container . does not run, after 1 start: (?:.*?; )?{reason}"
            return len(re.findall(words, status.all_output)) == 3

        wait_until(shown, BACK_S, f"the status has {reason}")
        explained = place.commands.output_of("explain", "journal", "--timeout", "1")
        assert re.search(f"why +no machine of the cluster takes it now: .*{reason}", explained), explained
        _free_nodes(place)
        return _ALL

    journal.survives(moves)
    journal.let_go()


def test_at_its_time_limit_a_topology_saves_and_continues(place: SlurmPlace) -> None:
    """Effectively once, without periodic checkpoints: what the first jobs have done is committed, once and in order."""
    _saves_and_continues(place, _LIMIT, lambda: None)
    assert place.slurm.ask("squeue", "-h", "-t", "TIMEOUT", "-o", "%j") == "", "they have ended in order"


def test_a_preempted_topology_saves_and_continues(place: SlurmPlace) -> None:
    """Slurm warns jobs before it takes their node, and gives them the partition's `GraceTime`."""
    _saves_and_continues(place, (), lambda: _take_all_nodes(place), lambda: _free_nodes(place))


def _saves_and_continues(
    place: SlurmPlace,
    options: tuple[str, ...],
    move: Callable[[], None],
    moved: Callable[[], None] = lambda: None,
) -> None:
    """Run to the first moves of all containers and on. No checkpoints are taken but those of the warnings."""
    run = place.commands.submit("exactly_once.py", "--interval", "3600", options=options)
    wait_until(lambda: place.attempts("exactly_once") == [1, 1, 1], BACK_S, "all containers run")
    move()
    wait_until(lambda: committed(run.out), _OVER_S, "lines of a checkpoint, which only the warning takes")
    moved()
    wait_until(lambda: all(each > 1 for each in place.attempts("exactly_once")), _OVER_S, "all have moved")
    before = sum(map(len, committed(run.out).values()))
    (run.out / "stop").touch()
    place.commands.ends("exactly_once")
    assert check_committed(run.out, PARTITIONS) > before


def test_a_bare_interpreter_runs_a_topology_from_wheels(place: SlurmPlace) -> None:
    """`scheduler.install: wheels`: the nodes have Python alone, and a killed container starts from the wheels again."""
    bare = bare_interpreter()
    wheels = write_wheel_archive(["heron-bundle-local", "heron-scheduler-slurm"], place.sandbox.root / "wheels.zip")
    place.write_profile(python=str(bare), install="wheels", wheels=wheels)
    journal = ClusterJournal(place.commands)
    for harm in (journal.kill_launcher, SlurmHarm(place, journal).cancel_job):
        journal.survives(harm)
    assert {Path(each.exe()).resolve() for each in journal.lines.run.processes("executor")} == {bare.resolve()}
    journal.lines.let_go()
    place.commands.ends("journal", alone=False)
    journal.lines.check()
    unpacked = place.sandbox.tmp / f"heron-wheels-{os.getuid()}"  # it stays on a node, for the next start there
    assert stat.S_IMODE(unpacked.stat().st_mode) == 0o700
    shutil.rmtree(unpacked)
    place.commands.ends("journal")  # `heron list` removes what is left of it when the cluster has ended its jobs


def test_a_standby_on_another_node_takes_over(place: SlurmPlace) -> None:
    """Slurm packs jobs onto one node; topology managers move apart. Then the machine of the leader is lost."""
    journal = ClusterJournal(place.commands, "--set", "topology.tmanager.standbys=1")

    def nodes() -> dict[int, str]:
        return {each: place.job("journal", each)[1] for each in range(3)}

    journal.loses_leader(nodes, lambda node: place.lose(node, machine=True))
    wait_until(lambda: len(set(journal.managers())) == 2, BACK_S, "both run again")
    found = nodes()
    assert found[0] != found[1], found
    journal.let_go()
    place.leaves_nothing()
