"""Bad hosts on a Slurm with three nodes: containers leave a blocked node, and a slow node is found and left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.slurm import SlurmCluster
from on_cluster import BACK_S, ClusterJournal
from slurm_place import SlurmPlace, fresh_slurm

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_FOUND_S = 240.0
_HALF_A_NODE = {"executor_cpu": 5}  # of 16 cores: Slurm fills a node with two containers before the next one
_MANAGER = {
    "mode": "act",
    "policies": "[{driver: ds2, period_s: 2, look_back_s: 4}]",
    "components": "{split: {min: 2, max: 2}, journal: {min: 2, max: 2}}",
    "cool_down_s": 1,
    "effect_s": 30,  # of a restart on the same node, which does not help
}
_EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def place(sandbox: Sandbox, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmPlace]:
    """The complete, empty cluster, and the profile ``my-slurm`` that names it."""
    with fresh_slurm(sandbox, slurm, monkeypatch) as place:
        place.write_profile(**_HALF_A_NODE)
        yield place


def _listed(place: SlurmPlace) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(place.commands.output_of("hosts", "list", "--json"))
    return found


def test_containers_leave_a_blocked_node(place: SlurmPlace) -> None:
    """A restart moves the container of a blocked node, and no line is lost; without a block it stays where it was."""
    journal = ClusterJournal(place.commands)
    assert place.job("journal", 2)[1] == "n2"
    place.commands.output_of("restart", "journal", "2")
    assert place.job("journal", 2)[1] == "n2"
    place.commands.output_of("hosts", "block", "n2", "--for", "10min", "--reason", "slow disk")
    place.commands.output_of("hosts", "block", "no-such-node")  # Slurm would refuse a job that names it
    blocks = {each["host"]: each for each in _listed(place)["blocks"]}
    assert blocks["n2"]["reason"] == "slow disk"
    assert place.job("journal", 2)[1] == "n2", "a block alone changes nothing that runs"
    place.commands.output_of("restart", "journal", "2")
    assert place.job("journal", 2)[1] == "n3"
    journal.flows("the move")
    place.commands.output_of("hosts", "unblock", "n2")
    place.commands.output_of("restart", "journal", "2", "--elsewhere")
    assert place.job("journal", 2)[1] == "n2"
    journal.flows("the way back")
    journal.let_go()
    place.leaves_nothing()


def test_a_slow_node_is_blocked_and_left_by_itself(place: SlurmPlace) -> None:
    """One node is slow: the topology reports it, the judge blocks it, and the health manager moves the container."""
    judge = ("--period", "1", "--looks", "2", "--share", "0.5")
    submitted = place.sandbox.start(_EXAMPLES / "hosts.py", args=judge, command="submit local")
    assert submitted.wait() == 0, submitted.all_output
    settings = [word for key, value in _MANAGER.items() for word in ("--set", f"health.{key}={value}")]
    journal = ClusterJournal(place.commands, *settings, slow="n2")
    assert place.job("journal", 2)[1] == "n2"

    def is_blocked() -> bool:
        return [each["host"] for each in _listed(place)["blocks"]] == ["n2"]

    wait_until(is_blocked, _FOUND_S, "the judge has blocked n2")
    assert "times as long for a tuple" in _listed(place)["blocks"][0]["reason"]

    def has_moved() -> bool:
        return place.containers_on("n3", "journal") == {2}

    wait_until(has_moved, _FOUND_S, "container 2 runs on n3")

    def is_effective() -> bool:
        records = json.loads(place.commands.output_of("health", "journal", "history", "--json"))
        return ("blocked-host", "effective") in {
            (each["diagnosis"]["name"], each["state"]) for each in records["decisions"]
        }

    wait_until(is_effective, BACK_S, "the health manager has seen the effect")
    journal.flows("the move")
    place.sandbox.output_of("kill", "hosts")
    journal.let_go()
    place.leaves_nothing()
