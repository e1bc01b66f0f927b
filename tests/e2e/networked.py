"""A run of the topology ``crossing`` whose containers are on hosts of a network that fails, and what it must show.

The journal is the witness: every line must be in it with all its words, and each word at one task only, however often
connections broke and wherever a container went. Message timeouts are off: what is lost has to be noticed.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import psutil

from heron.clock import monotonic_s, wall_s
from heron.testing.servers.network import Network

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

__all__ = ["Crossing", "Status"]

Status = dict[str, Any]
"""What `heron status --json` has under ``status``."""

_WORDS_A_LINE = 3
_CONTAINERS = 3
_PROFILE = """\
extends: local
scheduler: {{driver: local, launcher: {launcher}}}
engine: {settings}
{more}
"""
# Back pressure comes early, so that an outage of seconds shows that it bounds what waits.
_SMALL = {
    "heron.link.window.bytes": 64 * 1024,
    "heron.stmgr.low.watermark.bytes": 64 * 1024,
    "heron.stmgr.high.watermark.bytes": 256 * 1024,
    "heron.stmgr.hard.limit.bytes": 512 * 1024,
}


class Crossing:
    """Begins with container N on host N, and with words in both directions."""

    def __init__(self, sandbox: Sandbox, network: Network, settings: Mapping[str, object], more: str = "") -> None:
        """Starts it; `more` is what else stands in its profile."""
        self.sandbox, self.network = sandbox, network
        self.places = sandbox.root / "places"
        self.places.mkdir()
        for container_id in range(_CONTAINERS):
            network.place(self.places, container_id, container_id)
        folder = sandbox.home / ".heron" / "profiles"
        folder.mkdir(parents=True)
        chosen = json.dumps({"heron.network.host": network.interface, **_SMALL, **settings})
        launcher = json.dumps(network.launcher(self.places))
        (folder / "net.yaml").write_text(_PROFILE.format(launcher=launcher, settings=chosen, more=more))
        self.run: HeronRun = sandbox.start("crossing.py", "--profile", "net")
        self.run.until(lambda: len(list(self.run.out.glob("journal-*"))) == 2, "both journals")
        self.container_of = {each["task_id"]: each["container_id"] for each in self.status()["tasks"]}
        self.flows("at the start")
        self.pids = self.running()

    def status(self) -> Status:
        """What it says now."""
        said = self.sandbox.say("status", "crossing", "--profile", "net", "--json")
        document: Status = json.loads(said)["status"]
        return document

    def running(self) -> dict[str, int]:
        """The process ids by container and name."""
        return {f"{each['container_id']}/{each['process']}": each["pid"] for each in self.status()["processes"]}

    def crossed(self) -> dict[tuple[int, int], float]:
        """When the newest word came, by the containers of its line's spout and of the last bolt."""
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
        """The most that any stream manager holds for a task (bytes), and what the largest of them has in memory."""
        said = self.sandbox.say("metrics", "crossing", "--profile", "net", "--json")
        held = [row["value"] for row in json.loads(said)["metrics"] if row["name"] == "outlet-bytes"]
        resident = [process.memory_info().rss for process in self.run.processes("stmgr")]
        return {"outlet": max(held, default=0), "resident": max(resident)}

    def flows(self, what: str, timeout_s: float = 30.0) -> float:
        """Waits until words pass from each container to the other; after how many seconds they did."""
        since_s = wall_s()

        def both_ways() -> bool:
            newest = self.crossed()
            return newest[1, 2] > since_s and newest[2, 1] > since_s

        self.run.until(both_ways, f"words in both directions {what}", timeout_s)
        newest = self.crossed()
        return max(newest[1, 2], newest[2, 1]) - since_s

    def stands(self, seconds: float) -> None:
        """Lets time pass, with a run that must not end meanwhile."""
        ended_s = monotonic_s() + seconds
        pause = threading.Event()
        while monotonic_s() < ended_s:
            assert self.run.process.poll() is None, self.run.spoken
            pause.wait(0.1)

    def until_status(self, holds: Callable[[Status], object], what: str, timeout_s: float = 20.0) -> None:
        """Waits until the status is as wanted."""
        self.run.until(lambda: holds(self.status()), what, timeout_s)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of that name in the files of all containers."""
        found = []
        for path in (self.sandbox.home / ".heron" / "logs").glob("*/events-*.jsonl"):
            found += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [each for each in found if each["name"] == name]

    def listening(self, role: str, name: str) -> set[str]:
        """The addresses at which a process listens on the network."""
        process = self.run.the(role, name)
        return {each.laddr.ip for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN}

    def untouched(self) -> None:
        """No process was started anew."""
        assert self.running() == self.pids

    def complete(self) -> int:
        """Ends the stream: every line is there whole, each word at one task only. Returns how many words came twice."""
        (self.run.out / "stop").touch()
        self.run.finished()
        rows = [row.split() for path in self.run.out.glob("journal-*") for row in path.read_text().splitlines()]
        ends = [int(path.read_text()) for path in self.run.out.glob("emitted-*")]
        assert len(ends) == 2
        emitted = {line for end in ends for line in range(end % 2, end, 2)}
        seen = {(int(line), word) for line, word, *_ in rows}
        wanted = {(line, f"word-{word}-{line % 7}") for line in emitted for word in range(_WORDS_A_LINE)}
        assert seen == wanted, f"{len(wanted - seen)} words are lost, {len(seen - wanted)} are strange"
        tasks_of = defaultdict(set)
        for _, word, _, task, _ in rows:
            tasks_of[word].add(task)
        assert {word: tasks for word, tasks in tasks_of.items() if len(tasks) > 1} == {}, "misdelivered"
        acked = {line for path in self.run.out.glob("acked-*") for line in path.read_text().split()}
        assert len(acked) == len(emitted)
        return len(rows) - len(seen)
