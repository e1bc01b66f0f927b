"""What an instance is started with, and what its segments say about their origin."""

from __future__ import annotations

from collections.abc import Callable

from heron.instance.output.stream_origin import StreamOrigin
from heron.kernel.role_spec import InstanceSpec
from heron.spi.driver import DriverRef

__all__ = ["instance_spec", "stream_origin"]


def instance_spec(
    component: str,
    task_id: int,
    *,
    component_index: int = 0,
    incarnation: int = 0,
    run_dir: str = "/run",
    serializers: tuple[DriverRef, ...] = (),
) -> InstanceSpec:
    """The spec of a task of topology ``t`` in container 1; without `run_dir` no file or socket exists behind it."""
    log_dir = "/log" if run_dir == "/run" else run_dir
    return InstanceSpec(
        "t", "t-1", 1, task_id, component, component_index, incarnation, run_dir, log_dir, "/package", {}, serializers
    )


def stream_origin(
    task_id: int = 1,
    *,
    incarnation: int = 0,
    batch_rows: int = 1000,
    batch_bytes: int = 100_000,
    tuple_max_bytes: int = 1_000_000,
    rejected: Callable[[str, object, Exception], None] = lambda _stream, _row, _error: None,
) -> StreamOrigin:
    """The origin of a task's output streams under plan version 1, with the limits of its batches."""
    return StreamOrigin(task_id, incarnation, 1, batch_rows, batch_bytes, tuple_max_bytes, rejected)
