"""Why a request is refused, or has no answer yet. `problems` gives each its status of HTTP."""

from __future__ import annotations

from heron.errors import HeronError, UsageError

__all__ = ["BusyError", "MalformedQueryError", "NotYetKnownError", "RefusedByOperatorError", "UnknownPlaceError"]


class UnknownPlaceError(UsageError):
    """No cluster, topology, component or task has that name."""


class MalformedQueryError(UsageError):
    """A parameter of a request is unknown, repeated, missing or out of its range."""


class BusyError(UsageError):
    """Another action on the topology is under way, or another observation of the task."""


class NotYetKnownError(HeronError):
    """The tracker knows the topology, but has not read that part of it yet."""


class RefusedByOperatorError(UsageError):
    """The tracker could answer, but was started without the option that allows it."""
