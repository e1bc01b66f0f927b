"""Containers on separate hosts, with a network between them that fails; at least once, nothing is lost.

The journal of the topology ``crossing`` must contain every line with all its words, and each word at one task only,
however often connections broke and wherever a container moved. Message timeouts are off, so the engine must notice each
loss.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from heron.clock import monotonic_s, wall_s
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.namespace import remove_stale
from heron_testing_servers.network import HERE, Network
from heron_testing_servers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

Status = dict[str, Any]
"""The member ``status`` of `heron status --json`."""

BACK_S = 12.0  # twice the largest measured time (docs/operations.md)
ELSEWHERE = 3
HARD_BYTES, WINDOW_BYTES, SPOUTS_AND_SPLITS = 512 * 1024, 64 * 1024, 4
GROWTH_BYTES = 64 * 1024 * 1024

# A silent link is replaced after 2 s instead of 15; a silent stream manager is given up after 4 s instead of 60.
QUICK = {"heron.network.timeout.s": 2.0, "heron.silence.s": 4.0}

WORDS_A_LINE = 3
PROFILE = """\
extends: local
scheduler: {{driver: local, launcher: {launcher}}}
engine: {settings}
{more}
"""
# Back pressure starts early, so an outage of seconds shows that it bounds the waiting data.
SMALL = {
    "heron.link.window.bytes": 64 * 1024,
    "heron.stmgr.low.watermark.bytes": 64 * 1024,
    "heron.stmgr.high.watermark.bytes": 256 * 1024,
    "heron.stmgr.hard.limit.bytes": 512 * 1024,
}


def write_profile(sandbox: Sandbox, network: Network, settings: Mapping[str, object], more: str = "") -> Path:
    """Write the profile ``net``, with container N on host N; return the folder that says where containers run."""
    places = sandbox.root / "places"
    places.mkdir()
    for container_id in range(ELSEWHERE + 1):
        network.place(places, container_id, container_id)
    chosen = json.dumps({"heron.network.host": network.interface, **settings})
    launcher = json.dumps(network.launcher(places))
    sandbox.write_profile("net", PROFILE.format(launcher=launcher, settings=chosen, more=more))
    return places


class Crossing:
    """Starts with container N on host N, and with words in both directions."""

    def __init__(self, sandbox: Sandbox, network: Network, settings: Mapping[str, object], more: str = "") -> None:
        """Start it; `more` are further lines of its profile."""
        self.sandbox, self.network = sandbox, network
        self.places = write_profile(sandbox, network, {**SMALL, **settings}, more)
        self.run: HeronRun = sandbox.start("crossing.py", "--profile", "net")
        self.run.until(lambda: len(list(self.run.out.glob("journal-*"))) == 2, "both journals")
        self.container_of = {each["task_id"]: each["container_id"] for each in self.status()["tasks"]}
        self.flows("at the start")
        self.pids = self.running()

    def status(self) -> Status:
        """Return the present status."""
        status: Status = self.sandbox.status_document("crossing", "--profile", "net")["status"]
        return status

    def running(self) -> dict[str, int]:
        """Return process ids by container and name."""
        return {f"{each['container_id']}/{each['process']}": each["pid"] for each in self.status()["processes"]}

    def crossed(self) -> dict[tuple[int, int], float]:
        """Return the time of the newest word, by the container of the spout and the container of the last bolt."""
        newest: dict[tuple[int, int], float] = defaultdict(float)
        for path in self.run.out.glob("journal-*"):
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 20_000))
                rows = [row.split() for row in file.read().decode().splitlines()[1:-1]]
            for _, _, source, task, at_s in rows:
                pair = self.container_of[int(source)], self.container_of[int(task)]
                newest[pair] = max(newest[pair], float(at_s))
        return newest

    def buffers(self) -> dict[str, float]:
        """Return the largest buffer for a task in any stream manager, and the largest memory of one, in bytes."""
        output = self.sandbox.output_of("metrics", "crossing", "--profile", "net", "--json")
        held = [row["value"] for row in json.loads(output) if row["name"] == "outlet-bytes"]
        resident = [process.memory_info().rss for process in self.run.processes("stmgr")]
        return {"outlet": max(held, default=0), "resident": max(resident)}

    def flows(self, what: str, timeout_s: float = 30.0) -> float:
        """Wait until words pass between the containers in both directions; return the seconds."""
        since_s = wall_s()

        def both_ways() -> bool:
            newest = self.crossed()
            return newest[1, 2] > since_s and newest[2, 1] > since_s

        self.run.until(both_ways, f"words in both directions {what}", timeout_s)
        newest = self.crossed()
        return max(newest[1, 2], newest[2, 1]) - since_s

    def pass_time(self, seconds: float) -> None:
        """Let time pass while the run goes on."""
        ended_s = monotonic_s() + seconds
        pause = threading.Event()
        while monotonic_s() < ended_s:
            assert self.run.process.poll() is None, self.run.all_output
            pause.wait(0.1)

    def until_status(self, holds: Callable[[Status], object], what: str, timeout_s: float = 20.0) -> None:
        """Wait until the status meets the condition."""
        self.run.until(lambda: holds(self.status()), what, timeout_s)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events with that name in the files of all containers."""
        found = []
        for path in (self.sandbox.home / ".heron" / "logs").glob("*/events-*.jsonl"):
            found += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [each for each in found if each["name"] == name]

    def untouched(self) -> None:
        """Return whether no process was restarted."""
        assert self.running() == self.pids

    def note(self, text: str) -> None:
        """Print a figure, shown with ``-s``."""
        print(text)  # noqa: T201

    def complete(self) -> None:
        """End the stream, and check that every line is complete and each word is at one task only."""
        (self.run.out / "stop").touch()
        self.run.finished()
        rows = [row.split() for path in self.run.out.glob("journal-*") for row in path.read_text().splitlines()]
        ends = [int(path.read_text()) for path in self.run.out.glob("emitted-*[0-9]")]
        assert len(ends) == 2
        emitted = {line for end in ends for line in range(end % 2, end, 2)}
        seen = {(int(line), word) for line, word, *_ in rows}
        wanted = {(line, f"word-{word}-{line % 7}") for line in emitted for word in range(WORDS_A_LINE)}
        assert seen == wanted, f"{len(wanted - seen)} words are lost, {len(seen - wanted)} are strange"
        tasks_of = defaultdict(set)
        for _, word, _, task, _ in rows:
            tasks_of[word].add(task)
        assert {word: tasks for word, tasks in tasks_of.items() if len(tasks) > 1} == {}, "misdelivered"
        acked = {line for path in self.run.out.glob("acked-*") for line in path.read_text().split()}
        assert len(acked) == len(emitted)
        self.note(f"{len(rows) - len(seen)} of {len(seen)} words came more than once")


def silent(status: Status, container_id: int, by: int) -> bool:
    """Return whether the status says that `by` does not hear a container; 0 is the topology manager."""
    return any(each["container_id"] == container_id and each["by"] == by for each in status["unreached"])


def named_silent(status: Status) -> int:
    """Return the number of stream managers that were given up because they were silent."""
    return sum("the stream manager of container" in each and "is silent" in each for each in status["errors"])


def check_outage(crossing: Crossing, network: Network, seconds: float) -> None:
    """Cut the link between two containers; check the names, the bound, and the recovery."""
    before = crossing.buffers()["resident"]
    began_s = monotonic_s()
    with network.cut(1, 2):
        crossing.until_status(lambda status: silent(status, 2, 1) and silent(status, 1, 2), "both are named")
        shown = crossing.sandbox.output_of("status", "crossing", "--profile", "net")
        assert "container 2 is not reached from container 1" in " ".join(shown.split())
        crossing.until_status(lambda status: status["backpressure"], "the spouts are held back")
        culprit = crossing.status()["backpressure"][0]
        assert culprit["component"] in {"split", "journal"}
        assert culprit["cause"] in {f"container {number} is not reached" for number in (1, 2)}
        crossing.pass_time(seconds - (monotonic_s() - began_s))
        held = crossing.buffers()
        assert held["outlet"] <= HARD_BYTES + SPOUTS_AND_SPLITS * WINDOW_BYTES
        assert held["resident"] <= before + GROWTH_BYTES
    back_s = crossing.flows(f"after {seconds:g} s without the link", 60.0)
    crossing.note(f"link down for {monotonic_s() - began_s - back_s:.1f} s, back after {back_s:.1f} s")
    assert back_s < BACK_S
    crossing.until_status(
        lambda status: not status["unreached"] and not status["backpressure"], "no container is silent"
    )
    crossing.untouched()


def test_a_link_recovers_after_seconds(sandbox: Sandbox, network: Network) -> None:
    """A status need not show one second; after ten, each side names the other in status, events, metrics and log."""
    crossing = Crossing(sandbox, network, {})
    with network.cut(1, 2):
        crossing.pass_time(1.0)
    assert crossing.flows("after a second without the link") < BACK_S
    check_outage(crossing, network, 10.0)
    subjects = {each["subject"] for each in crossing.events("peer-not-reached")}
    assert subjects == {"stmgr-1", "stmgr-2"}
    assert {each["subject"] for each in crossing.events("peer-reached")} == subjects
    assert "the stream manager of container 2 is not reached" in sandbox.log_text("stmgr-1.log")
    crossing.complete()


@pytest.mark.soak
def test_a_link_recovers_after_a_minute(sandbox: Sandbox, network: Network) -> None:
    """The operating system alone would retry after another minute."""
    crossing = Crossing(sandbox, network, {})
    check_outage(crossing, network, 60.0)
    crossing.complete()


def test_a_link_that_works_in_one_direction_is_replaced(sandbox: Sandbox, network: Network) -> None:
    """Neither side can rely on received messages; then packets are lost at random, and everything arrives."""
    crossing = Crossing(sandbox, network, QUICK)
    for one, other in ((1, 2), (2, 1)):
        with network.one_way(one, other):
            crossing.until_status(lambda status: status["unreached"], "the peer is named")
            crossing.pass_time(3.0)
        assert crossing.flows(f"after {one} did not reach {other}") < BACK_S
    for percent in (5, 20):
        with network.lossy(1, 2, percent):
            crossing.pass_time(4.0)
            crossing.flows(f"while {percent} of 100 packets are lost", 60.0)
    assert crossing.flows("without lost packets") < BACK_S
    crossing.untouched()
    crossing.complete()


def test_a_slow_link_is_not_replaced(sandbox: Sandbox, network: Network) -> None:
    """100 to 200 ms in each direction is not an outage. Broken connections are replaced."""
    with network.slow(1, 2, 0.15):
        crossing = Crossing(sandbox, network, QUICK)
        crossing.pass_time(5.0)
        crossing.flows("over the slow link")
        assert crossing.status()["unreached"] == []
        assert crossing.events("peer-not-reached") == []
    assert crossing.flows("over the direct link") < BACK_S
    crossing.untouched()
    crossing.complete()


def test_data_flows_without_the_topology_manager_and_to_a_moved_container(sandbox: Sandbox, network: Network) -> None:
    """A silent stream manager is named and keeps its place; a container that moves gets a new plan."""
    crossing = Crossing(sandbox, network, QUICK)
    version = crossing.status()["plan_version"]
    with network.cut(0, 1), network.cut(0, 2):
        crossing.until_status(lambda status: silent(status, 1, 0) and silent(status, 2, 0), "both are named")
        crossing.until_status(lambda status: named_silent(status) == 2, "both have been silent for too long")
        crossing.flows("without the topology manager")
    crossing.until_status(lambda status: not status["unreached"], "both are heard again")
    assert crossing.status()["plan_version"] == version
    crossing.untouched()

    network.place(crossing.places, 2, ELSEWHERE)
    victim = crossing.pids["2/executor"]
    began_s = monotonic_s()
    (executor,) = (each for each in crossing.run.processes("executor") if each.pid == victim)
    executor.kill()
    crossing.until_status(lambda status: status["plan_version"] > version, "the new plan", 30.0)
    crossing.note(f"the new plan came after {monotonic_s() - began_s:.1f} s")
    crossing.flows("to where the container is now")
    others = {name: pid for name, pid in crossing.running().items() if not name.startswith("2/")}
    assert others == {name: pid for name, pid in crossing.pids.items() if not name.startswith("2/")}
    assert network.host_of(crossing.run.the("stmgr", "/c2/").pid) == ELSEWHERE
    crossing.complete()


def test_a_container_works_without_a_connection_to_zookeeper(
    sandbox: Sandbox, network: Network, zookeeper: ZooKeeperServer
) -> None:
    """When the connection returns, the container learns the location of the new topology manager."""
    with contextlib.closing(
        Relay(zookeeper.address, listener=socket.create_server((network.address(HERE), 0)))
    ) as relay:
        hosts = "{}:{}".format(*relay.address)
        statemgr = f'statemgr: {{driver: zookeeper, hosts: "{hosts}", root: /network, username: heron, password: word}}'
        crossing = Crossing(sandbox, network, QUICK, statemgr)
        with network.cut(2, HERE):
            crossing.pass_time(3.0)
            crossing.flows("while container 2 does not reach ZooKeeper")
            (manager,) = crossing.run.processes("tmanager")
            manager.kill()
            crossing.flows("without a topology manager")
            crossing.pass_time(5.0)
        crossing.until_status(
            lambda status: (
                not status["unreached"] and {each["container_id"] for each in status["processes"]} == {0, 1, 2}
            ),
            "container 2 has found the next topology manager",
            30.0,
        )
        others = {name: pid for name, pid in crossing.running().items() if name != "0/tmanager"}
        assert others == {name: pid for name, pid in crossing.pids.items() if name != "0/tmanager"}
        crossing.complete()


def test_a_killed_tests_namespaces_are_removed_by_the_next_test(network: Network) -> None:
    """Namespaces, and the processes in them, outlive their creator."""
    script = (
        "import signal, subprocess\n"
        "from heron_testing_servers.network import Network\n"
        "network = Network(1)\n"
        "network.start()\n"
        "print(network.enter(0)[1], flush=True)\n"
        "print(subprocess.Popen([*network.enter(0), 'sleep', '1000'], stdout=subprocess.DEVNULL).pid, flush=True)\n"
        "signal.pause()\n"
    )
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        path = Path(killed.stdout.readline().strip().removeprefix("--net="))
        sleeper = int(killed.stdout.readline())
        assert path.exists()
        remove_stale("heron")
        assert path.exists(), "its test still runs"
        killed.kill()
    remove_stale("heron")
    assert not path.exists()
    wait_until(lambda: not psutil.pid_exists(sleeper), 10, "its processes are gone")
