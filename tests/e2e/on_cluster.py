"""What tests on shared clusters have in common: commands with a profile, the demo, a journal, and updates."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from pydoc_data import topics
from typing import TYPE_CHECKING

from heron.clock import monotonic_s
from heron.errors import UnreachableError, UsageError
from heron_cli.client import connect
from heron_testing.waiting import wait_until, wait_until_grown
from line_journal import Lines
from tallies import check_tallies

if TYPE_CHECKING:
    from heron_cli.topologies.running.status_report import StatusReport
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["BACK_S", "ClusterJournal", "OnCluster"]

BACK_S = 120.0
"""How long a cluster may take to bring a container back."""

_AWAY_S = 30.0
_TUPLES = 1000


class OnCluster:
    """The commands of a sandbox with one profile, whose scheduler is a cluster."""

    def __init__(self, sandbox: Sandbox, profile: str) -> None:
        self.sandbox, self.profile = sandbox, profile

    def output_of(self, *words: str, code: int = 0) -> str:
        """Return the output of a command about a topology."""
        return self.sandbox.output_of(*words, "--profile", self.profile, code=code)

    def submit(self, program: str | Path, *args: str, options: tuple[str, ...] = ()) -> HeronRun:
        """Submit a topology."""
        run = self.sandbox.start(program, *options, args=args, command=f"submit {self.profile}")
        assert run.wait() == 0, run.all_output
        return run

    def status(self, topology: str) -> StatusReport | None:
        """Return the status of a topology; None while its topology manager is being restarted.

        This process asks: a command needs a quarter of a second of a processor, and a test that waits asks often.
        """
        heron = self.sandbox.home / ".heron"
        overrides = {"statemgr.root": str(heron / "state")}
        with connect(self.profile, config_path=heron / "profiles", overrides=overrides, read_only=True) as client:
            try:
                return client.status(topology)
            except (UsageError, UnreachableError):
                return None

    def ends(self, topology: str, *, alone: bool = True) -> None:
        """Wait until a topology is listed as finished and, if it is alone, nothing is left."""

        def over() -> bool:
            listed = json.loads(self.sandbox.output_of("list", self.profile, "--json"))
            finished = any(each["name"] == topology and each["state"] == "finished" for each in listed)
            return finished and not (alone and self.sandbox.remaining())

        wait_until(over, BACK_S, f"{topology} has ended and left nothing")

    def count_example(
        self, examples: Path, loops: int, start: Callable[[HeronRun], None] | None = None, options: tuple[str, ...] = ()
    ) -> str:
        """Run the demo to its end, check that its counts are those of the text, and return a status of it.

        `start` gets the submission that had these `options`.
        """
        counts = self.sandbox.root / "counts.tsv"
        arguments = ("--loops", str(loops), "--out", str(counts))
        submission = self.submit(examples / "word_count.py", *arguments, options=options)
        if start:
            start(submission)
        status = self.output_of("status", "word_count")
        self.ends("word_count")
        words = Counter(word for text in topics.topics.values() for word in text.lower().split())
        rows = (line.rsplit("\t", 1) for line in counts.read_text(encoding="utf-8").splitlines())
        assert {word: int(count) for word, count in rows} == {word: count * loops for word, count in words.items()}
        return status

    def update(self, sizes: Iterable[int], places: Callable[[], int]) -> list[int]:
        """Change the number of containers of a topology while another one runs beside; each number is counted once.

        Both topologies leave nothing. Return the number of places of the cluster after each change.
        """
        self.submit("steady.py")
        run = self.submit("updating.py")
        found = []
        for size in sizes:
            before = self._tallied()
            self.output_of("update", "updating", "--container-number", str(size))
            wait_until(lambda n=before: self._tallied() > n + _TUPLES, BACK_S, f"tuples in {size} containers")  # type: ignore[misc]
            found.append(places())
        (run.out / "stop").touch()
        self.ends("updating", alone=False)
        assert check_tallies(run) > 0
        killed = json.loads(self.output_of("kill", "steady", "--json"))
        assert killed["left"] == []
        assert not self.sandbox.remaining()
        return found

    def _tallied(self) -> int:
        report = self.status("updating")
        return sum(each.executed for each in report.status.components if each.name == "tally") if report else 0


class ClusterJournal:
    """A run that processes lines from the beginning until `let_go`."""

    def __init__(self, cluster: OnCluster) -> None:
        self._cluster = cluster
        self.lines = Lines(cluster.sandbox, pause_s=0.05, command=f"submit {cluster.profile}")
        assert self.lines.run.wait() == 0, self.lines.run.all_output
        self.flows("the start")

    def flows(self, after: str) -> None:
        """Wait until more lines are acked."""
        wait_until_grown(self.lines.acked_bytes, BACK_S, f"lines after {after}")

    def flows_on(self, after: str) -> None:
        """Check for half a minute that lines are acked."""
        end_s = monotonic_s() + _AWAY_S
        while monotonic_s() < end_s:
            self.flows(after)

    def harm(self, harms: Sequence[Callable[[], set[int]]]) -> None:
        """Do harm that ends the returned containers: these run again, no other one was restarted, and lines flow."""
        for harm in harms:
            wait_until(lambda: len(self._attempts()) == 3, BACK_S, "all containers run")
            before = self._attempts()
            self._is_back(before, harm(), harm.__name__)
            self.flows(harm.__name__)
            self._has_no_copies(harm.__name__)

    def let_go(self) -> None:
        """End the run, and check that every word of every line has arrived."""
        self.lines.let_go()
        self._cluster.ends("journal")
        self.lines.check()

    def _attempts(self) -> dict[int, int]:
        """Return the number of starts of each running container."""
        report = self._cluster.status("journal")
        return {each.container_id: each.attempts for each in report.containers if each.running} if report else {}

    def _is_back(self, before: dict[int, int], ended: set[int], after: str) -> None:
        now: dict[int, int] = {}

        def are_back() -> bool:
            now.clear()
            now.update(self._attempts())
            return len(now) == len(before) and all(now[each] > before[each] for each in ended)

        wait_until(are_back, BACK_S, f"{ended} of {before} run again after {after}")
        assert {each for each in now if now[each] > before[each]} == ended, f"{after}: {before} became {now}"

    def _has_no_copies(self, after: str) -> None:
        """Wait until each container has one executor: a copy on a lost machine ends by itself."""

        def executors() -> list[int]:
            return [len(self.lines.run.processes("executor", f"/c{each}.json")) for each in range(3)]

        wait_until(lambda: executors() == [1, 1, 1], BACK_S, f"one executor for each container after {after}")
