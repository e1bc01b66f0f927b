"""What the tasks of a replay have measured, and the result of the whole replay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode
from heron.spi.typed_values import decode_json
from heron_load_replay.latency_histogram import LatencyHistogram

__all__ = ["TRACKING", "ReplayResult", "TaskResult", "merged", "read_results", "result_lines", "write_result"]

TRACKING = f"{TOPOLOGY_RELIABILITY_MODE}={TopologyReliabilityMode.ATLEAST_ONCE.value}"
"""The setting with which a topology tracks acks."""
PERCENTS = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a spout task has measured: counts, `lasted_s` from its begin to its last ack, and two histograms.

    `latency` is from the due time of a tuple to the ack of its tree. `lateness`, a part of it, is how late a tuple was
    emitted. `restarted` tells that the process of the task died, and that a part of the replay is missing.
    """

    component: str
    index: int
    emitted: int
    acked: int
    failed: int
    lasted_s: float
    latency: dict[int, int]
    latency_most_us: int
    lateness: dict[int, int]
    lateness_most_us: int
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay; times in seconds, by percentile. `tuples` are due, and `missing` tasks told nothing.

    Where acks are not `tracked`, a tuple counts as acked when it was emitted.
    """

    topology: str
    load: str
    tracked: bool
    tuples: int
    emitted: int
    acked: int
    failed: int
    lasted_s: float
    latency_s: dict[str, float]
    lateness_s: dict[str, float]
    restarted: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every tuple was emitted and acked."""
        return self.acked == self.tuples and not (self.restarted or self.missing)


def write_result(folder: Path, result: TaskResult) -> None:
    """Write the result of a task, which replaces an earlier one."""
    path = _path(folder, result.component, result.index)
    part = path.with_suffix(".part")
    part.write_bytes(msgspec.json.encode(result))
    part.replace(path)


def read_results(folder: Path, tasks: Iterable[tuple[str, int]]) -> dict[tuple[str, int], TaskResult | None]:
    """Return the result of each task, ``(component, index)``; None of a task that has told nothing."""
    paths = {each: _path(folder, *each) for each in tasks}
    return {each: decode_json(path.read_bytes(), TaskResult) if path.exists() else None for each, path in paths.items()}


def merged(
    topology: str, load: str, tuples: int, results: dict[tuple[str, int], TaskResult | None], *, tracked: bool
) -> ReplayResult:
    """Return the result of a replay from those of its tasks."""
    found = [each for each in results.values() if each is not None]
    latency, lateness = LatencyHistogram(), LatencyHistogram()
    for each in found:
        latency.merge(LatencyHistogram(each.latency, each.latency_most_us))
        lateness.merge(LatencyHistogram(each.lateness, each.lateness_most_us))
    return ReplayResult(
        topology,
        load,
        tracked,
        tuples,
        sum(each.emitted for each in found),
        sum(each.acked for each in found),
        sum(each.failed for each in found),
        max((each.lasted_s for each in found), default=0.0),
        _percentiles(latency),
        _percentiles(lateness),
        tuple(f"{each.component}/{each.index}" for each in found if each.restarted),
        tuple(f"{component}/{index}" for (component, index), each in results.items() if each is None),
    )


def result_lines(result: ReplayResult) -> list[str]:
    """Return the result for people."""
    rate = result.acked / result.lasted_s if result.lasted_s else 0.0
    lines = [
        f"{result.load}: {result.acked:,} of {result.tuples:,} tuples {'acked' if result.tracked else 'emitted'}, "
        f"{result.failed:,} failed, in {result.lasted_s:.1f} s ({rate:,.0f} tuples/s)",
    ]
    if result.tracked:
        lines.append(f"latency from the due time: {_text(result.latency_s)}")
        lines.append(f"of it, lateness of the emit: {_text(result.lateness_s)}")
    else:
        lines.append(f"lateness of the emit: {_text(result.lateness_s)}")
        lines.append(f"the topology tracks no acks; if its bolts ack, `--set {TRACKING}` measures to the last of them")
    lines += [
        f"the process of {each} was started again: its load is missing from there on" for each in result.restarted
    ]
    lines += [f"{each} has told no result" for each in result.missing]
    if result.emitted and not result.acked:
        lines.append("no tuple was acked: every bolt of a replay has to ack what it receives")
    return lines


def _path(folder: Path, component: str, index: int) -> Path:
    return folder / f"{component}-{index}.json"


def _percentiles(times: LatencyHistogram) -> dict[str, float]:
    found = {f"p{percent:g}": times.percentile_s(percent) for percent in PERCENTS}
    found["max"] = times.most_us / 1e6 if times.count else None
    return {name: value for name, value in found.items() if value is not None}


def _text(times: dict[str, float]) -> str:
    return ", ".join(f"{name} {_duration(value)}" for name, value in times.items()) or "none measured"


def _duration(value_s: float) -> str:
    return f"{value_s:.2f} s" if value_s >= 1 else f"{value_s * 1e3:.1f} ms"
