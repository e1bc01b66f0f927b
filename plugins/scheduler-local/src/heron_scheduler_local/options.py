"""The driver's section of a profile."""

from __future__ import annotations

from heron_scheduler_kit.options import SupervisedOptions

__all__ = ["LocalOptions"]


class LocalOptions(SupervisedOptions, frozen=True):
    """`executor` is empty for this interpreter's executor.

    `launcher` stands before it, with the container's id for `{container}`: a program that sets the stage and then
    becomes the executor (exec), because the supervisor has to be its parent.
    """

    launcher: tuple[str, ...] = ()
