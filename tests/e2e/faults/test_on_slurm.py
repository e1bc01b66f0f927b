"""Topologies on a Slurm with three nodes: the demo, updates, what Slurm says, and a clean end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.slurm import NODES, SlurmCluster
from heron_testing_servers.zookeeper import ZooKeeperServer
from line_journal import Lines
from on_cluster import BACK_S, OnCluster
from slurm_place import SlurmPlace, fresh_slurm

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_SUBMITTED_S = 120.0
_STATUS_S = 10.0  # how soon a person learns why a container does not run
_LOOPS = 30


@pytest.fixture
def place(sandbox: Sandbox, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmPlace]:
    """The complete, empty cluster, and the profile ``my-slurm`` that names it."""
    with fresh_slurm(sandbox, slurm, monkeypatch) as place:
        yield place


def test_the_example_counts_exactly(place: SlurmPlace, examples: Path) -> None:
    """The commands of the page: check, submit, status, squeue. The counts are those of the text."""
    assert "slurm-wlm" in place.sandbox.output_of("profiles", "check", "my-slurm")
    _count_words(place, place.commands, examples)


def test_the_shipped_profile_counts_exactly(
    place: SlurmPlace, zookeeper: ZooKeeperServer, s3: S3Server, examples: Path
) -> None:
    """State in ZooKeeper, packages in S3: `heron profiles check slurm` asks all three servers."""
    _count_words(place, place.use_servers(zookeeper, s3), examples)


def test_containers_come_and_go_without_loss(place: SlurmPlace) -> None:
    """From two containers to four and to one, while another topology runs beside; `heron kill` leaves nothing."""

    def jobs() -> int:
        running = place.slurm.ask("squeue", "-h", "-t", "RUNNING", "-o", "%j").split()
        return sum(each.startswith("heron.updating.") for each in running)

    steps = {"--container-number 2": 3, "--container-number 4": 5, "--container-number 1": 2}
    place.commands.update(steps, jobs)
    assert place.slurm.jobs() == []


@pytest.mark.parametrize(
    ("options", "cause", "reason"),
    [
        pytest.param({}, "no machine of the cluster takes it now", r"job \d+ is PENDING \(", id="room"),
        pytest.param(
            {"partition": "short", "time_limit": "10-00"},
            "a time limit forbids or ended it",
            r"job \d+ is PENDING \(PartitionTimeLimit\)",
            id="time-limit",
        ),
        pytest.param(
            {"partition": "physics"},
            "a right is missing",
            r"job \d+ is PENDING \(Job's account not known, so it can't use this partition",
            id="account",
        ),
    ],
)
def test_a_container_that_waits_says_why(place: SlurmPlace, options: dict[str, str], cause: str, reason: str) -> None:
    """`heron status` has Slurm's words, and `heron explain` the cause; `heron kill` leaves nothing."""
    if not options:
        for node in NODES:
            place.slurm.ask("scontrol", "update", f"nodename={node}", "state=DRAIN", "reason=test")
    settings = [word for name, value in options.items() for word in ("--set", f"scheduler.{name}={value}")]
    journal = Lines(place.sandbox, *settings, command="submit my-slurm")
    assert journal.run.wait(_SUBMITTED_S) == 0, journal.run.all_output

    def shown() -> bool:
        output = place.commands.output_of("status", "journal", "--timeout", "1", code=1)
        return re.search(f"container 0 does not run, after 0 starts: {reason}", output) is not None

    wait_until(shown, _STATUS_S, f"the status has {reason}")
    explained = place.commands.output_of("explain", "journal", "--timeout", "1")
    assert re.search(f"3 of 3 containers do not run: 0, 1, 2\n +why +{cause}: {reason}", explained), explained
    place.commands.output_of("kill", "journal")
    assert place.slurm.jobs() == []
    assert not place.sandbox.remaining()


def test_a_container_that_no_node_can_hold_is_refused(place: SlurmPlace) -> None:
    """The submission itself says it in Slurm's words, with what helps, and leaves nothing."""
    run = place.sandbox.start("steady.py", "--set", "scheduler.manager_memory_mb=20000", command="submit my-slurm")
    assert run.wait(_SUBMITTED_S) == 2, run.all_output
    words = "Requested node configuration is not available; request less, or set scheduler.partition to another"
    assert words in " ".join(run.stderr.split())
    assert place.slurm.jobs() == []
    assert not place.sandbox.remaining()


def _count_words(place: SlurmPlace, commands: OnCluster, examples: Path) -> None:
    """Run the example to its end; users of Slurm find the jobs by their names and comments."""

    def shown(_submission: HeronRun) -> None:
        status = ("status", "word_count", "--profile", commands.profile)
        wait_until(lambda: place.sandbox.start_command(*status).wait() == 0, BACK_S, "the topology runs")
        labels = place.slurm.ask("squeue", "-h", "-o", "%j %k").splitlines()
        assert "heron.word_count.1" in {line.split()[0] for line in labels}
        assert all("heron topology=word_count container=" in line and " owner=" in line for line in labels)

    commands.count_example(examples, _LOOPS, shown)
    place.leaves_nothing()
