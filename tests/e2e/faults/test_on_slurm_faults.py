"""Topologies on a Slurm with three nodes, whose jobs, nodes and controller are lost in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from heron_testing_servers.slurm import SlurmCluster
from on_cluster import ClusterJournal
from slurm_place import SlurmHarm, SlurmPlace, fresh_slurm

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


@pytest.fixture
def place(sandbox: Sandbox, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmPlace]:
    """The complete, empty cluster, and the profile ``my-slurm`` that names it."""
    with fresh_slurm(sandbox, slurm, monkeypatch) as place:
        yield place


@pytest.mark.parametrize("harms", ["cancel_job kill_script warn", "lose_node kill_slurmd preempt", "lose_controller"])
def test_no_line_is_lost_whatever_slurm_does(place: SlurmPlace, harms: str) -> None:
    """At least once: only the containers of these jobs restart, in new jobs, and all lines are counted."""
    journal = ClusterJournal(place.commands)
    harm = SlurmHarm(place, journal)
    for each in harms.split():
        journal.survives(getattr(harm, each))
    journal.let_go()
    assert place.slurm.jobs() == []


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [78])
def test_no_line_is_lost_in_minutes_of_faults(place: SlurmPlace, seed: int) -> None:
    """Processes, jobs, nodes and the controller are killed in any order."""
    journal = ClusterJournal(place.commands)
    harm = SlurmHarm(place, journal)
    of_jobs = (journal.kill_executor, journal.kill_launcher, harm.cancel_job, harm.kill_script, harm.warn)
    journal.survives_minutes(seed, (*of_jobs, harm.lose_node, harm.kill_slurmd, harm.preempt, harm.lose_controller))
    journal.let_go()
    assert place.slurm.jobs() == []
