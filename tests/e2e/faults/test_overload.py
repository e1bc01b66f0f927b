"""Overload: memory stays within the formula, the slow task is named, and back pressure ends with its cause.

docs/back-pressure.md has the formula and the table. Each case is short here, and has its full length in `./dev soak`.
"""

from __future__ import annotations

import array
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import psutil
import pytest

from heron.clock import monotonic_s
from heron.ipc.documents.status import Culprit, TopologyStatus, decode_status
from heron.kernel.settings import EngineSettings

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

KIB, MIB = 1024, 1024 * 1024
TIGHT = EngineSettings(
    high_watermark_bytes=1 * MIB,
    low_watermark_bytes=512 * KIB,
    hard_limit_bytes=2 * MIB,
    link_window_bytes=256 * KIB,
    out_queue_bytes=256 * KIB,
    batch_bytes=64 * KIB,
    metrics_export_s=0.2,
)
ROW_BYTES = 400  # a number, a text of a hundred bytes, their tuple and its containers, as Python objects
FULL_SPEED = 0.6  # of the pace before, in tuples and in work
NOT_HELD = 0.4
"""Fraction of the pace before, at once. Two seconds of one run differ by up to a factor of 0.58, while the share of
working time stays between 0.93 and 1.28. A throttled task has a hundredth of both.
"""
BACK_WITHIN_S = 2.0

_LARGEST_FLUSH_BATCHES = 8
_SLACK_BYTES = 16 * MIB  # libraries that are loaded later (numpy, 12 MiB), and memory that the allocator keeps


def stmgr_bound_bytes(settings: EngineSettings, *, full: int, congested: int, producers: int) -> int:
    """Return the limit for the data in a stream manager; docs/back-pressure.md gives the reasons.

    Bolts feed `full` tasks, and only spouts feed `congested` ones. `producers` are local instances and peers of a task.
    """
    flush_bytes = max(settings.link_window_bytes, _LARGEST_FLUSH_BATCHES * settings.batch_bytes)
    return 2 * (
        full * settings.hard_limit_bytes
        + congested * settings.high_watermark_bytes
        + (full + congested) * (settings.link_window_bytes + producers * flush_bytes)
    )


def instance_bound_bytes(settings: EngineSettings, row_bytes: int) -> int:
    """Return the limit for the data in an instance, with rows of that size as Python objects."""
    flush_rows = _LARGEST_FLUSH_BATCHES * settings.batch_rows
    return (
        2 * settings.link_window_bytes
        + settings.out_queue_bytes
        + 2 * _LARGEST_FLUSH_BATCHES * settings.batch_bytes
        + 2 * flush_rows * row_bytes
    )


class MemoryWatch:
    """Measures the processes of a run ten times a second, beginning when they are idle."""

    def __init__(self, run: HeronRun) -> None:
        self._processes = {
            command[-1]: each
            for role in ("executor", "tmanager", "stmgr", "metricsmgr", "instance")
            for each, command in run.commands(role)
        }
        self.idle = self._sizes()
        self.most = dict(self.idle)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def grown(self) -> dict[str, int]:
        """End the watch; return the largest growth of each process in bytes, by the path of its spec."""
        self._over.set()
        self._thread.join()
        return {name: self.most[name] - size for name, size in self.idle.items()}

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            for name, size in self._sizes().items():
                self.most[name] = max(self.most[name], size)

    def _sizes(self) -> dict[str, int]:
        sizes = {}
        for name, process in self._processes.items():
            try:
                sizes[name] = process.memory_info().rss
            except psutil.Error:  # the process has exited
                continue
        return sizes


class Line(NamedTuple):
    """A line of a task's journal: its process, the time, the tuples that the process has counted, its working time."""

    pid: int
    at_s: float
    counted: int
    worked_s: float


class Pace(NamedTuple):
    """Tuples a second, and the fraction of the time in which the task worked."""

    tuples_s: float
    work: float


def pace_in(lines: list[Line], from_s: float, to_s: float) -> Pace | None:
    """Return the pace between two moments; None if there are fewer than two lines."""
    found = [each for each in lines if from_s <= each.at_s <= to_s]
    if len(found) < 2:
        return None
    first, last = found[0], found[-1]
    seconds = last.at_s - first.at_s
    return Pace((last.counted - first.counted) / seconds, (last.worked_s - first.worked_s) / seconds)


class Overload:
    """One run."""

    def __init__(
        self, sandbox: Sandbox, settings: EngineSettings, *, spouts: int = 1, tasks: int = 1, **more: int
    ) -> None:
        self._sandbox = sandbox
        default = EngineSettings().to_keys()
        changed = [f"{key}={value}" for key, value in settings.to_keys().items() if value != default[key]]
        arguments = {"spouts": spouts, "tasks": tasks, **more}
        self.run = sandbox.start(
            "overload.py",
            *(word for each in changed for word in ("--set", each)),
            args=tuple(word for name, value in arguments.items() for word in (f"--{name}", str(value))),
        )
        out = self.run.out
        self.run.until(
            lambda: (len(list(out.glob("ready-*"))), len(list(out.glob("journal-*")))) == (spouts, tasks),
            "every task runs",
        )
        self._tasks = self.status().tasks

    def memory(self) -> MemoryWatch:
        """Watch every process from now on, before the first emit."""
        return MemoryWatch(self.run)

    def create_files(self, *names: str) -> float:
        """Create the files with these names; return the monotonic time."""
        for name in names:
            self._file(name).touch()
        return monotonic_s()

    def remove_files(self, *names: str) -> float:
        """Remove the files."""
        for name in names:
            self._file(name).unlink()
        return monotonic_s()

    def status(self) -> TopologyStatus:
        """Return the output of ``heron status``."""
        document = self._sandbox.status("overload")
        return decode_status(json.dumps(document).encode())

    def culprits(self) -> dict[int, Culprit]:
        """Return the culprits, by task."""
        return {each.task_id: each for each in self.status().backpressure}

    def wait_for_culprit(self, task_id: int, cause: str) -> None:
        """Wait until the task is a culprit with that cause."""
        self.run.until(
            lambda: (one := self.culprits().get(task_id)) and one.cause == cause, f"{task_id}: {cause}", 20.0
        )

    def durations(self, task_id: int) -> list[float]:
        """Return how long the task was a culprit, each time, from the events."""
        ended = [each for each in self.events("backpressure-ended") if each["subject"] == f"task-{task_id}"]
        return [float(each["attributes"]["duration_s"]) for each in ended]

    def named(self, *task_ids: int, timeout_s: float = 30.0) -> dict[int, Culprit]:
        """Wait until exactly these tasks are the culprits; return the culprits."""
        seen: list[dict[int, Culprit]] = [{}]

        def look() -> bool:
            seen[0] = self.culprits()
            return seen[0].keys() == set(task_ids)

        self.run.until(look, f"the culprits are {task_ids}", timeout_s)
        return seen[0]

    def works(self, more: int = 1000) -> None:
        """Wait until every task has counted `more` tuples."""
        before = {task: sum(self.counts(task)) for task in self.tasks("work")}
        self.run.until(
            lambda: all(sum(self.counts(task)) >= count + more for task, count in before.items()), f"{more} more tuples"
        )

    def tasks(self, component: str) -> list[int]:
        """Return its task ids."""
        return [each.task_id for each in self._tasks if each.component == component]

    def container_of(self, task_id: int) -> int:
        """Return the container of the task."""
        (container_id,) = (each.container_id for each in self._tasks if each.task_id == task_id)
        return container_id

    def counts(self, task_id: int) -> list[int]:
        """Return the counts of each life of a task."""
        return list({pid: counted for pid, _, counted, _ in self.journal(task_id)}.values())

    def journal(self, task_id: int) -> list[Line]:
        """Return the journal of the task, in order."""
        path = self._file(f"journal-{task_id}")
        if not path.exists():
            return []
        text = path.read_text(encoding="utf-8")
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [
            Line(int(pid), float(at_s), int(counted), float(worked_s))
            for pid, at_s, counted, worked_s in map(str.split, lines)
        ]

    def pace(self, task_id: int, from_s: float, to_s: float) -> Pace:
        """Return the pace of a task between two moments."""
        found = pace_in(self.journal(task_id), from_s, to_s)
        assert found, f"task {task_id} has no journal line between {from_s} and {to_s}"
        return found

    def best_pace(self, task_id: int, from_s: float, to_s: float) -> Pace:
        """Return the highest pace in any half second between them."""
        lines = self.journal(task_id)
        steps = [from_s + step / 4 for step in range(int(4 * (to_s - from_s)) - 1)]
        paces = [found for at_s in steps if (found := pace_in(lines, at_s, at_s + 0.5))]
        assert paces, f"task {task_id} has no journal line between {from_s} and {to_s}"
        return Pace(max(each.tuples_s for each in paces), max(each.work for each in paces))

    def is_back(self, task_id: int, from_s: float, to_s: float, again_s: float) -> None:
        """Check that soon after `again_s` the task works as between two moments before, and reaches full speed."""
        before = self.pace(task_id, from_s, to_s)
        after = self.best_pace(task_id, again_s, again_s + BACK_WITHIN_S)
        assert after.work > FULL_SPEED * before.work, f"{after} after {before}"
        assert after.tuples_s > NOT_HELD * before.tuples_s, f"{after} after {before}"
        fast = FULL_SPEED * before.tuples_s
        self.run.until(
            lambda: self.best_pace(task_id, again_s, monotonic_s()).tuples_s > fast, f"{fast:.0f}/s, after {after}"
        )

    def pass_time(self, seconds: float) -> float:
        """Wait while the run goes on; return the time."""
        end_s = monotonic_s() + seconds
        self.run.until(lambda: monotonic_s() >= end_s, "time", seconds + 5)
        return monotonic_s()

    def seen(self) -> set[int]:
        """Return the numbers that tasks recorded before they acked them, in all their lives."""
        found: set[int] = set()
        for path in self.run.out.glob("seen-*"):
            numbers = array.array("q")
            numbers.frombytes(path.read_bytes())
            found.update(numbers)
        return found

    def numbers(self) -> tuple[int, int]:
        """Return the count of numbers of the spout's last life, and how often a number came again."""
        (row,) = self.run.results("lines").values()
        return msgspec.convert(row, tuple[int, int])

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events with that name, in the order of each file."""
        lines = [line for line in self._sandbox.log_text("events-*.jsonl").splitlines() if line]
        return [event for event in map(json.loads, lines) if event["name"] == name]

    def most(self, name: str, container_id: int, **labels: str) -> float:
        """Return the largest value of a metric of a container's stream manager."""
        records = [json.loads(line) for line in self._sandbox.log_text("metrics-*.jsonl").splitlines() if line]
        values: list[float] = [
            metric["value"]
            for record in records
            if (record["source"]["process"], record["source"]["container_id"]) == ("stmgr", container_id)
            for metric in record["metrics"]
            if metric["name"] == name and metric["labels"] == labels
        ]
        return max(values)

    def _file(self, name: str) -> Path:
        return self.run.out / name


def stays_within_bounds(watch: MemoryWatch, settings: EngineSettings, **stmgr: int) -> None:
    """Check instances and stream managers against the formulas; other processes handle no data."""
    bounds = {
        "stmgr": stmgr_bound_bytes(settings, **stmgr),
        "instance": instance_bound_bytes(settings, ROW_BYTES),
        "other": 0,
    }
    over = {}
    for name, grown in watch.grown().items():
        spec = Path(name).stem
        role = "instance" if "-" in spec else spec if spec in bounds else "other"
        if grown > bounds[role] + _SLACK_BYTES:
            over[name] = f"{grown / MIB:.1f} MiB more than idle, allowed are {(bounds[role] + _SLACK_BYTES) / MIB:.1f}"
    assert not over, over


@contextmanager
def mostly_stopped(process: psutil.Process, *, stopped_s: float, runs_s: float) -> Iterator[None]:
    """Let the process run only for short moments."""
    over = threading.Event()

    def stop_and_go() -> None:
        while not over.is_set():
            process.send_signal(signal.SIGSTOP)
            over.wait(stopped_s)
            process.send_signal(signal.SIGCONT)
            over.wait(runs_s)

    thread = threading.Thread(target=stop_and_go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.pace
@pytest.mark.parametrize(
    "blocked_s", [pytest.param(3, marks=pytest.mark.guarantee), pytest.param(120, marks=pytest.mark.soak)]
)
def test_a_bolt_that_multiplies_tuples_before_a_bolt_that_blocks(sandbox: Sandbox, blocked_s: int) -> None:
    """The hard limit bounds the data between them, and nothing is lost.

    Guarantee: the memory of every process stays within the formula.
    """
    case = Overload(sandbox, TIGHT, fan=1000, bytes=4096)
    (work,) = case.tasks("work")
    watch = case.memory()
    case.create_files("go")
    case.works(10_000)
    quick_s = case.pass_time(1.5)
    case.create_files("block-0")
    case.pass_time(blocked_s)
    case.wait_for_culprit(work, "the task is slow")

    again_s = case.remove_files("block-0")
    case.pass_time(BACK_WITHIN_S + 0.5)
    case.is_back(work, quick_s - 1.5, quick_s, again_s)
    case.create_files("stop")
    report = case.run.finished()
    assert report.components["work"].executed == report.components["many"].emitted > 0
    stays_within_bounds(watch, TIGHT, full=1, congested=1, producers=2)
    assert max(case.durations(work)) >= blocked_s
    assert case.most("backpressure-s", case.container_of(work), task=str(work)) >= blocked_s


@pytest.mark.pace
@pytest.mark.parametrize(("slow_s", "fields"), [(3, 1), pytest.param(300, 0, marks=pytest.mark.soak)])
def test_two_of_four_tasks_are_slow(sandbox: Sandbox, slow_s: int, fields: int) -> None:
    """Only these two are named; the spout returns to full speed with the last of them."""
    case = Overload(sandbox, TIGHT, tasks=4, fields=fields)
    first, _, _, other = case.tasks("work")
    watch = case.memory()
    case.create_files("go")
    case.works(10_000)
    quick_s = case.pass_time(1.5)
    case.create_files("slow-0", "slow-3")
    named: set[int] = set()

    def both() -> bool:
        named.update(case.culprits())  # one task may stop the spout before the other is full
        return named >= {first, other}

    case.run.until(both, "both are culprits")
    case.pass_time(slow_s)
    case.remove_files("slow-0")
    case.named(other)
    assert named == {first, other}

    again_s = case.remove_files("slow-3")
    case.pass_time(BACK_WITHIN_S + 0.5)
    for task in (first, other):
        case.is_back(task, quick_s - 1.5, quick_s, again_s)
    case.create_files("stop")
    report = case.run.finished()
    assert report.components["work"].executed == report.components["lines"].emitted
    stays_within_bounds(watch, TIGHT, full=0, congested=4, producers=2)
    assert {each["subject"] for each in case.events("backpressure-started")} >= {f"task-{first}", f"task-{other}"}


@pytest.mark.pace
@pytest.mark.parametrize("slow_s", [3, pytest.param(60, marks=pytest.mark.soak)])
def test_the_other_stream_managers_name_a_slow_one(sandbox: Sandbox, slow_s: int) -> None:
    """It runs a tenth of the time: the remote spout waits for it, it does not count as dead, and nothing is lost."""
    case = Overload(sandbox, TIGHT, acks=1, keeps=1)
    (work,) = case.tasks("work")
    watch = case.memory()
    case.create_files("go")
    case.works(10_000)
    quick_s = case.pass_time(1.5)
    with mostly_stopped(case.run.the("stmgr", "/c2/"), stopped_s=0.9, runs_s=0.1):
        case.wait_for_culprit(work, "the stream manager of container 2 is slow, or the network to it")
        case.pass_time(slow_s)
    again_s = monotonic_s()
    case.pass_time(BACK_WITHIN_S + 0.5)
    case.is_back(work, quick_s - 1.5, quick_s, again_s)
    case.create_files("stop")
    case.run.finished()
    numbers, again = case.numbers()
    assert case.seen() == set(range(numbers))
    assert again == 0, "slow is not dead"
    assert case.most("late-s", 2) > slow_s / 2
    stays_within_bounds(watch, TIGHT, full=0, congested=1, producers=2)


@pytest.mark.pace
def test_back_pressure_ends_when_its_culprit_dies(sandbox: Sandbox) -> None:
    """This includes its stream manager and container. A new spout is throttled at once, and nothing is lost."""
    case = Overload(sandbox, TIGHT, acks=1, keeps=1, timeout=3)  # shorter than the wait, so these tuples come again
    (spout,), (work,) = case.tasks("lines"), case.tasks("work")
    case.create_files("go")
    instances = ("instance", f"/lines-{spout}"), ("instance", f"/work-{work}")
    for victims in (instances, (("stmgr", "/c2/"),), (("executor", "2.json"),)):
        case.works()
        case.create_files("block-0")
        case.named(work)
        first_calls = set(case.run.out.glob("first-call-of-*"))
        for role, name in victims:
            victim = case.run.the(role, name)
            victim.kill()
            victim.wait()
            case.run.the(role, name)
            if "lines" in name:
                case.pass_time(0.5)
                assert set(case.run.out.glob("first-call-of-*")) == first_calls, "the new spout was not throttled"
        case.named(work)  # its next life is blocked at once
        case.remove_files("block-0")
        case.named()
    case.works()
    case.create_files("stop")
    case.run.finished()
    numbers, _ = case.numbers()
    assert case.seen() >= set(range(numbers))
