"""The errors of a child process, as people see them."""

from __future__ import annotations

from heron.errors import UserCodeError

__all__ = ["ChildError", "ChildProtocolError"]

_LONGEST_PART = 100


class ChildError(UserCodeError):
    """A child process failed, or reported an error.

    `kind` tells errors of one child apart, so that each is shown. `place` is the command of the child. The message has
    all that is known: the lines of a traceback would be the engine's.
    """

    trace = ""

    def __init__(self, message: str, kind: str, place: str) -> None:
        super().__init__(message)
        self.part = kind[:_LONGEST_PART]
        self.place = place


class ChildProtocolError(UserCodeError):
    """A child wrote what is not a message of the protocol; nothing after it can be trusted."""
