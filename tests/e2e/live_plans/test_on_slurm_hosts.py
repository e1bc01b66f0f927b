"""A slow node of a real Slurm: a topology reports it, the judge blocks it, and the health manager leaves it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heron_testing.waiting import wait_until, wait_until_grown
from heron_testing_servers.slurm import NODES, SlurmCluster
from line_journal import Lines
from on_cluster import BACK_S
from slurm_place import SlurmPlace, fresh_slurm

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_HEALED_S = 300.0  # reports and looks are 15 s apart
_BOUNDS = ",".join(f"{each}: {{min: 2, max: 2}}" for each in ("lines", "split", "journal"))
_HEALTH = {
    "mode": "act",
    "policies": "[{driver: ds2, period_s: 1, look_back_s: 4}]",
    "cool_down_s": 2,
    "components": f"{{{_BOUNDS}}}",  # the load is small
}
# The topology has tasks on two nodes, of which one may be blocked; two looks of it are enough.
_RULES = ("--period", "1", "--looks", "2", "--share", "0.5")


class _SlowLines(Lines):
    """A run of ``slow_node``, with a health manager."""

    def __init__(self, place: SlurmPlace) -> None:
        options = tuple(word for key, value in _HEALTH.items() for word in ("--set", f"health.{key}={value}"))
        self.run = place.commands.submit("slow_node.py", options=options)


@pytest.fixture
def place(sandbox: Sandbox, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmPlace]:
    """The complete, empty cluster, and the profile ``my-slurm`` that names it."""
    with fresh_slurm(sandbox, slurm, monkeypatch) as place:
        yield place


def _hosts(place: SlurmPlace, what: str) -> dict[str, dict[str, Any]]:
    """Return the reports or blocks of hosts, by host."""
    return {each["host"]: each for each in json.loads(place.commands.output_of("hosts", "list", "--json"))[what]}


def test_a_slow_node_is_reported_blocked_and_left(place: SlurmPlace, examples: Path) -> None:
    """The container goes to the free node by itself, no line is lost, and the list has the reason of the block."""
    lines = _SlowLines(place)
    wait_until(lambda: lines.acked_bytes() > 0, BACK_S, "the first lines are acked")
    nodes = {each: place.job("slow_node", each)[1] for each in (1, 2)}
    assert len(set(nodes.values())) == 2, nodes
    slow = nodes[2]
    (free,) = set(NODES) - set(nodes.values())
    place.commands.submit(examples / "hosts.py", "--profile", place.commands.profile, *_RULES)
    wait_until(lambda: _hosts(place, "reports").keys() == set(nodes.values()), BACK_S, "both nodes are reported")
    assert not _hosts(place, "blocks")

    (lines.run.out / "slow-node").write_text(slow, encoding="utf-8")
    wait_until(lambda: place.containers_on(free, "slow_node") == {2}, _HEALED_S, f"container 2 has left {slow}")
    assert place.job("slow_node", 1)[1] == nodes[1], "the other container stays"
    (block,) = _hosts(place, "blocks").values()
    assert (block["host"], block["by"]) == (slow, "judge")
    assert re.fullmatch(r"slow_node: \d+\.\d times as long for a tuple", block["reason"]), block

    def decided() -> list[str]:
        found = json.loads(place.commands.output_of("health", "slow_node", "history", "--json"))["decisions"]
        return [each["state"] for each in found if each["diagnosis"]["name"] == "blocked-host"]

    wait_until(lambda: decided() == ["effective"], BACK_S, "its effect is seen")
    wait_until(lambda: place.attempts("slow_node")[2] > 1, BACK_S, "container 2 runs again")
    wait_until_grown(lines.acked_bytes, BACK_S, "lines after the move")
    place.commands.output_of("kill", "hosts")
    lines.let_go()
    place.commands.ends("slow_node", alone=False)

    def left() -> list[str]:
        place.commands.ends("slow_node", alone=False)  # which removes what is left when the cluster has ended its jobs
        return place.sandbox.remaining()

    # The list is of all topologies of a state manager, and stays.
    wait_until(lambda: left() == ["state/hostblocks/all"], BACK_S, "the list alone is left")
    (place.sandbox.home / ".heron" / "state" / "hostblocks" / "all").unlink()
    lines.check()
