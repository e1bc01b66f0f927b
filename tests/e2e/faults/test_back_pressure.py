"""A slow bolt slows its spout: memory stays bounded, the culprit is named, and nothing is lost."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

TUPLES = 50_000  # 200 MiB of text
MIB = 1024 * 1024
LIMIT_BYTES = 110 * MIB  # an idle process and its buffers, with room; much less than the spout would send
BUCKETS_PER_S = 4  # as in straggler.py
FULL_SPEED = 0.6  # of the median before: the speed of these machines varies


@pytest.mark.guarantee
def test_a_blocked_bolt_throttles_its_spout_and_is_not_restarted(sandbox: Sandbox) -> None:
    """Slow is not dead: while the bolt blocks, every queue is full and no process grows; then everything arrives.

    Guarantee: a blocked bolt throttles its spout, is named, and is not restarted.
    """
    run = sandbox.start("slow.py")
    run.printed("back pressure by slow/")
    watched = [*run.processes("stmgr"), *run.processes("instance")]
    assert len(watched) == 4
    largest = dict.fromkeys((each.pid for each in watched), 0)

    def ended() -> bool:
        for each in watched:
            try:
                largest[each.pid] = max(largest[each.pid], each.memory_info().rss)
            except psutil.Error:  # the process has exited
                continue
        return run.process.poll() is not None

    run.until(ended, "the end")
    report = run.finished()

    received: object = list(run.results("slow").values())
    assert received == [[TUPLES, sum(range(TUPLES))]]
    assert (report.components["large"].emitted, report.components["slow"].executed) == (TUPLES, TUPLES)
    assert max(largest.values()) < LIMIT_BYTES, {pid: f"{size / MIB:.0f} MiB" for pid, size in largest.items()}
    assert len((run.out / "pids").read_text(encoding="utf-8").splitlines()) == 1, "the process was restarted"
    assert "died" not in run.stderr


def largest_of(run: HeronRun, *roles: str) -> dict[str, int]:
    """Watch the memory of all processes with these roles until the run ends; return the largest of each, in bytes."""
    run.printed("back pressure by work/")
    watched = [each for role in roles for each in run.commands(role)]
    largest: dict[str, int] = {}

    def ended() -> bool:
        for process, command in watched:
            try:
                largest[command[-1]] = max(largest.get(command[-1], 0), process.memory_info().rss)
            except psutil.Error:  # the process has exited
                continue
        return run.process.poll() is not None

    run.until(ended, "the end", timeout_s=180)
    return largest


def only(rows: dict[int, list[list[object]]]) -> tuple[int, dict[int, int], list[float]]:
    """Return the result of the only task of a component of straggler.py: sum, tuples by bucket, slow times."""
    (row,) = rows.values()
    total, buckets, slow_s = msgspec.convert(row, tuple[int, list[tuple[int, int]], list[float]])
    return total, dict(buckets), slow_s


@pytest.mark.pace
@pytest.mark.parametrize(
    "slow_s", [pytest.param(3, marks=pytest.mark.guarantee), pytest.param(60, marks=pytest.mark.soak)]
)
def test_a_slow_bolt_throttles_only_its_own_spout(sandbox: Sandbox, slow_s: int) -> None:
    """Memory stays bounded, the other pipeline goes on, nothing is lost, and full speed returns.

    Guarantee: a slow bolt throttles only the spouts that feed it, and full speed returns.
    """
    run = sandbox.start("straggler.py", args=("--slow", str(slow_s)))
    largest = largest_of(run, "stmgr", "instance")
    assert "the task is slow" in run.stderr
    report = run.finished()

    for spout, bolt in (("lines", "work"), ("clicks", "store")):
        total, _, _ = only(run.results(bolt))
        emitted = report.components[spout].emitted
        assert (report.components[bolt].executed, total) == (emitted, emitted * (emitted - 1) // 2)
    assert len(largest) == 6
    assert max(largest.values()) < LIMIT_BYTES, {name: f"{size / MIB:.0f} MiB" for name, size in largest.items()}

    _, work, (slow_at_s, quick_at_s) = only(run.results("work"))
    _, store, _ = only(run.results("store"))
    slow_at, quick_at = (int(each * BUCKETS_PER_S) for each in (slow_at_s, quick_at_s))
    before = statistics.median(work[bucket] for bucket in sorted(work)[1:] if bucket < slow_at)
    during = [work.get(bucket, 0) for bucket in range(slow_at + 1, quick_at)]
    assert statistics.median(during) < before / 20
    others = [store.get(bucket, 0) for bucket in range(slow_at + 1, quick_at)]
    assert min(others) > 0, "the other pipeline stopped"
    assert statistics.median(others) > FULL_SPEED * statistics.median(store[each] for each in store if each < slow_at)
    within_2_s = [work.get(bucket, 0) for bucket in range(quick_at + 1, quick_at + 2 * BUCKETS_PER_S)]
    assert max(within_2_s) > FULL_SPEED * before, within_2_s


def test_tuples_are_dropped_and_counted_if_the_topology_allows_it(sandbox: Sandbox) -> None:
    """``topology.droptuples.upon.backpressure``: the spout goes on, and dropped tuples are counted."""
    run = sandbox.start("straggler.py", args=("--slow", "2", "--drop", "1"))
    report = run.finished()
    records = [json.loads(line) for line in sandbox.log_text("metrics-*.jsonl").splitlines() if line]
    metrics = [metric for record in records for metric in record["metrics"]]
    dropped = max(each["value"] for each in metrics if each["name"] == "dropped-tuples")
    for spout, bolt in (("lines", "work"), ("clicks", "store")):
        assert report.components[bolt].executed < report.components[spout].emitted
    assert (
        0
        < dropped
        <= max(
            report.components[spout].emitted - report.components[bolt].executed
            for spout, bolt in (("lines", "work"), ("clicks", "store"))
        )
    )
    held_back_s = [each["value"] for each in metrics if each["name"] == "held-back-s"]
    assert held_back_s
    assert max(held_back_s) == 0.0, "a spout was throttled"
