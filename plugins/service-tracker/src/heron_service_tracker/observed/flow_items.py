"""What is made once of each observation, for many requests: components, the streams between them, and tasks.

`busy` is the share of time, from 0 to 1, in which a task cannot take more work. `busy_from` says how it is known:

- ``task-time``: the task accounts for its time;
- ``processor``: the processor time of its process, of a task for which nothing better is known;
- "": nothing is known.

`time` has the share of each use of a task's time, from 0 to 1, as in the metric ``task-time-s``. It is empty where the
task does not account for its time.
"""

from __future__ import annotations

import msgspec

__all__ = ["FlowEdge", "FlowNode", "TaskRow"]


class FlowNode(msgspec.Struct, frozen=True):
    """A component in the graph.

    `rate_per_s` counts the tuples that a spout emits or a bolt executes. `busy` is the mean over its tasks and
    `busy_most` that of the busiest one. `culprits` are its tasks that cause back pressure, `causes` the reasons, and
    `held_back_by` the components whose back pressure throttles this spout. `restarts` and `errors` are numbers.
    `resident_bytes` is the memory of all its tasks, `resident_bytes_most` that of the largest one, and
    `resident_bytes_others` the median of all other tasks of the topology; None where nothing was measured.
    """

    name: str
    kind: str
    parallelism: int
    running: int
    rate_per_s: float
    emit_per_s: float
    queue_bytes: int
    latency_s: float
    failed: int
    busy: float | None
    busy_most: float | None
    busy_from: str
    time: dict[str, float]
    culprits: tuple[int, ...]
    causes: tuple[str, ...]
    held_back_by: tuple[str, ...]
    restarts: int
    errors: int
    resident_bytes: float | None
    resident_bytes_most: float | None
    resident_bytes_others: float | None


class FlowEdge(msgspec.Struct, frozen=True):
    """A subscription: tuples of the stream that the target executes per second, None before they are known."""

    source: str
    target: str
    stream: str
    grouping: str
    rate_per_s: float | None


class TaskRow(msgspec.Struct, frozen=True, gc=False):
    """A task. Values are None where nothing was measured.

    `cores` is the processor time per second of its process, `gc_share` the share of time in Python's cycle collector.
    `shows_tuples` is whether the topology lets people see its tuples.
    """

    task_id: int
    component: str
    kind: str
    container_id: int
    host: str
    pid: int
    state: str
    restarts: int
    rate_per_s: float | None
    emit_per_s: float | None
    queue_bytes: float | None
    latency_p50_s: float | None
    latency_p99_s: float | None
    busy: float | None
    busy_from: str
    time: dict[str, float]
    cores: float | None
    resident_bytes: float | None
    gc_share: float | None
    culprit: str
    long_call: str
    last_error: str
    shows_tuples: bool
