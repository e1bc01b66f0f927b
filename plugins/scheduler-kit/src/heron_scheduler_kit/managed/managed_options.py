"""The options that all managed schedulers share."""

from __future__ import annotations

from typing import Annotated

import msgspec

from heron_scheduler_kit.options import Seconds

__all__ = ["ManagedOptions"]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class ManagedOptions(msgspec.Struct, frozen=True):
    """What containers run, what they request besides the packing plan, and how they are restarted and stopped.

    - `python` is the interpreter in the containers; heron-core and heron-scheduler-kit are installed there.
    - `executor` is the command that starts an executor; empty for the executor of that interpreter.
    - `executor_cpu` and `executor_memory_mb` are added to the request of each container, for executor and launcher.
    - `manager_cpu` and `manager_memory_mb` are the request of container 0, which is not in the packing plan.
    - `restart_*` and `stable_s` have the meaning that they have in `SupervisedOptions`.
    - `stop_grace_s` is the time for a clean stop of an executor; the cluster gives a container `end_s` before it kills.
    - `start_s` is how long a command waits for a container that it adds or restarts. A cluster that must first
      pull an image or add a machine may need minutes.
    """

    python: Annotated[str, msgspec.Meta(min_length=1)] = "python3"
    executor: tuple[str, ...] = ()
    executor_cpu: Annotated[float, msgspec.Meta(ge=0.0)] = 0.1
    executor_memory_mb: _Count = 128
    manager_cpu: Annotated[float, msgspec.Meta(ge=0.0)] = 0.5
    manager_memory_mb: _Count = 384
    restart_backoff_s: Seconds = 0.1
    restart_backoff_max_s: Seconds = 10.0
    restart_limit: _Count = 1000
    stable_s: Seconds = 30.0
    stop_grace_s: Annotated[float, msgspec.Meta(ge=0.0, le=8.0)] = 6.0  # `kill` has 15 s in all
    start_s: Annotated[float, msgspec.Meta(gt=0.0)] = (
        20.0  # the contract allows 30 s; a cluster that adds machines needs more
    )

    @property
    def end_s(self) -> float:
        """Seconds from SIGTERM to a launcher until the cluster kills the container."""
        return self.stop_grace_s + 2.0
