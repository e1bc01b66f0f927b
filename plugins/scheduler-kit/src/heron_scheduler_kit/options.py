"""The options that all schedulers with supervisors share."""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec

__all__ = ["Seconds", "SupervisedOptions", "SupervisionOptions"]

Seconds = Annotated[float, msgspec.Meta(ge=0.0)]


class SupervisionOptions(Protocol):
    """What a scheduler with a supervisor needs of its options; `SupervisedOptions` explains it."""

    @property
    def root(self) -> str: ...
    @property
    def executor(self) -> tuple[str, ...]: ...
    @property
    def restart_backoff_s(self) -> float: ...
    @property
    def restart_backoff_max_s(self) -> float: ...
    @property
    def restart_limit(self) -> int: ...
    @property
    def stable_s(self) -> float: ...
    @property
    def stop_grace_s(self) -> float: ...
    @property
    def take_over_s(self) -> float: ...


class SupervisedOptions(msgspec.Struct, frozen=True):
    """The folder of the jobs, and how containers are restarted and stopped; durations in seconds.

    `executor` is the command that starts an executor; it gets the path of the container's spec. Empty means the
    executor of this interpreter. A container whose executor has failed by itself more than `restart_limit` times in a
    row is given up (0: never); with the default that takes about three hours.
    """

    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/jobs"
    executor: tuple[str, ...] = ()
    restart_backoff_s: Seconds = 0.1
    restart_backoff_max_s: Seconds = 10.0
    restart_limit: Annotated[int, msgspec.Meta(ge=0)] = 1000
    stable_s: Seconds = 30.0
    stop_grace_s: Seconds = 4.0

    @property
    def take_over_s(self) -> float:
        """Seconds until the supervisor must report that the job runs, or why it does not."""
        return 30.0
