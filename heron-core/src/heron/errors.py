"""The one tree of errors, and the helper that names the nearest known name.

    HeronError
    ├── UsageError              asked wrongly; nothing was changed (exit code 2)
    │   ├── TopologyError       the author's topology does not verify
    │   ├── ConfigError         a key or value of configuration, topology or profile
    │   ├── PluginError         a driver is ambiguous, outdated or does not import
    │   │   └── MissingDriverError  no installed distribution provides it
    │   ├── AccessError         a key does not open what it was used for
    │   └── RefusedError        a running topology refuses what it was asked
    ├── StateError              the state manager refuses or cannot answer
    │   ├── StateConflictError  somebody else changed or holds the node
    │   ├── StateUnavailableError  the store does not answer; the outcome is unknown
    │   └── NewerFormatError    a newer version of heron-core wrote what is read
    ├── UnreachableError        a running topology does not answer; the outcome is unknown (exit code 1)
    ├── PackingError            the instances do not fit their containers
    ├── SchedulerError          containers cannot be started, changed or stopped
    ├── PackageError            a package cannot be made, moved or trusted
    ├── SinkError               a monitoring system does not take records; names how many are lost
    ├── RemoteProtocolError     the peer broke the wire's rules; its session ends
    ├── IllegalTransitionError  a state machine met an event its table does not have
    ├── TopologyFailedError     the topology ran and failed (exit code 1)
    ├── UserCodeError           a failure inside a component
    │   ├── EmitError           an emit that names no stream, or has the wrong fields
    │   └── SerializationError  a value that cannot travel
    └── LimitExceededError      a limit was met; names key, value and limit

"You called it wrong" (UsageError, EmitError) and "the peer is wrong" (RemoteProtocolError) are different classes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AccessError",
    "ConfigError",
    "EmitError",
    "HeronError",
    "IllegalTransitionError",
    "LimitExceededError",
    "MissingDriverError",
    "NewerFormatError",
    "PackageError",
    "PackingError",
    "PluginError",
    "RefusedError",
    "RemoteProtocolError",
    "SchedulerError",
    "SerializationError",
    "SinkError",
    "StateConflictError",
    "StateError",
    "StateUnavailableError",
    "TopologyError",
    "TopologyFailedError",
    "UnreachableError",
    "UsageError",
    "UserCodeError",
    "known",
    "nearest",
]


class HeronError(Exception):
    """The root of every error that Heron raises on purpose."""


class UsageError(HeronError):
    """Something was asked wrongly; nothing was changed."""


class TopologyError(UsageError):
    """The author's topology does not verify."""


class ConfigError(UsageError):
    """A key is unknown or its value is not acceptable."""


class PluginError(UsageError):
    """A driver is missing, ambiguous, of another contract version, or does not import."""


class MissingDriverError(PluginError):
    """No installed distribution provides the driver; `distribution` is the one whose name says that it would."""

    def __init__(self, message: str, distribution: str = "") -> None:
        super().__init__(message)
        self.distribution = distribution


class AccessError(UsageError):
    """A key does not open what it was used for."""


class RefusedError(UsageError):
    """A running topology refuses what it was asked; says why."""


class StateError(HeronError):
    """The state manager refuses a request."""


class StateConflictError(StateError):
    """The node was changed, or is held, by somebody else."""


class StateUnavailableError(StateError):
    """The store does not answer; whether the change was made is unknown."""


class NewerFormatError(StateError):
    """A document has a format that only a newer version of heron-core reads."""


class UnreachableError(HeronError):
    """A running topology does not answer; whether what was asked was done is unknown."""


class PackingError(HeronError):
    """The instances do not fit into their containers."""


class SchedulerError(HeronError):
    """Containers cannot be started, changed or stopped."""


class PackageError(HeronError):
    """A topology package cannot be made, moved or trusted."""


class SinkError(HeronError):
    """A monitoring system does not take records.

    `lost` records are gone and counted under `reason`, a word such as ``unsent``; 0: all are kept, for a later attempt.
    """

    def __init__(self, message: str, *, lost: int = 0, reason: str = "failed") -> None:
        super().__init__(message)
        self.lost = lost
        self.reason = reason


class RemoteProtocolError(HeronError):
    """The peer broke the rules of the wire; its session ends."""


class IllegalTransitionError(HeronError):
    """A state machine met an event that its table does not have; nothing was changed."""


class TopologyFailedError(HeronError):
    """The topology ran and failed."""


class UserCodeError(HeronError):
    """A failure inside a component."""


class EmitError(UserCodeError):
    """An emit that names an unknown stream or task, or has the wrong number of fields."""


class SerializationError(UserCodeError):
    """A value that cannot travel between processes."""


class LimitExceededError(HeronError):
    """A limit was met; the message names its key, the value and the limit."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """``" (nearest: 'split')"`` where a known name is close to `name`, else an empty string."""
    close = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f" (nearest: {close[0]!r})" if close else ""


def known(choices: Iterable[str]) -> str:
    """The choices as ``'a', 'b', 'c'``, sorted, or ``none``."""
    return ", ".join(repr(choice) for choice in sorted(choices)) or "none"
