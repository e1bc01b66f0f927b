"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["LocalOptions"]

_Seconds = Annotated[float, msgspec.Meta(ge=0.0)]


class LocalOptions(msgspec.Struct, frozen=True):
    """Where jobs keep their files, and how containers are restarted and stopped; durations in seconds.

    `executor` is the command that is given the path of a container's spec; empty for this interpreter's executor.
    `launcher` stands before it, with the container's id for `{container}`: a program that sets the stage and then
    becomes the executor (exec), because the supervisor has to be its parent.
    """

    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/jobs"
    executor: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()
    restart_backoff_s: _Seconds = 0.1
    restart_backoff_max_s: _Seconds = 10.0
    stable_s: _Seconds = 30.0
    stop_grace_s: _Seconds = 4.0
