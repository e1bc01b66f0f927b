"""The driver's section of a profile."""

from __future__ import annotations

from heron_scheduler_kit.options import SupervisedOptions

__all__ = ["LocalOptions"]


class LocalOptions(SupervisedOptions, frozen=True):
    """`executor` is the command; empty for the executor of this interpreter.

    `launcher` is put before that command, with the container's id for `{container}`. It names a program that prepares
    the environment and then becomes the executor (exec): the supervisor must be the executor's parent.
    """

    launcher: tuple[str, ...] = ()
