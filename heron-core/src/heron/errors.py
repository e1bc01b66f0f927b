"""The tree of errors, and helpers that name the nearest known name.

    HeronError
    ├── UsageError              the caller asked for something wrong; nothing was changed (exit code 2)
    │   ├── TopologyError       the author's topology does not verify
    │   ├── ConfigError         a key or value in a configuration, topology or profile
    │   ├── PluginError         a driver is ambiguous, outdated or does not import
    │   │   └── MissingDriverError  no installed distribution provides the driver
    │   ├── AccessError         a key does not permit the request
    │   └── RefusedError        a running topology refuses a request
    ├── StateError              the state manager refuses or cannot answer
    │   ├── StateConflictError  another process changed or holds the node
    │   ├── StateUnavailableError  the store does not answer; the outcome is unknown
    │   └── NewerFormatError    a newer version of heron-core wrote the document
    ├── UnreachableError        a running topology does not answer; the outcome is unknown (exit code 1)
    ├── PackingError            the instances do not fit their containers
    ├── SchedulerError          containers cannot be started, changed or stopped
    │   └── HostsNotAvoidedError  the scheduler cannot keep containers away from hosts
    ├── PackageError            a package cannot be made, moved or trusted
    ├── CheckpointError         a checkpoint cannot be stored, loaded or used
    │   └── TornCheckpointError  an object of it is not what was stored
    ├── KeyedStateError         a state backend cannot hold the state of a task
    ├── StoreError              a store cannot keep, show or read a view
    ├── ConnectorError          a source or sink of a pipeline cannot be read or written
    ├── SinkError               a monitoring system does not accept records; has the number of lost records
    ├── RemoteProtocolError     the peer broke the rules of the wire; its session ends
    ├── IllegalTransitionError  a state machine received an event that its table does not have
    ├── TopologyFailedError     the topology ran and failed (exit code 1)
    ├── UserCodeError           a failure inside a component
    │   ├── EmitError           an emit on an unknown stream, or with the wrong fields
    │   └── SerializationError  a value that cannot be encoded
    └── LimitExceededError      a limit was exceeded; names key, value and limit

"You called it wrong" (UsageError, EmitError) and "the peer is wrong" (RemoteProtocolError) are different classes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

__all__ = [
    "AccessError",
    "CheckpointError",
    "ConfigError",
    "ConnectorError",
    "EmitError",
    "HeronError",
    "HostsNotAvoidedError",
    "IllegalTransitionError",
    "KeyedStateError",
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
    "StoreError",
    "TopologyError",
    "TopologyFailedError",
    "TornCheckpointError",
    "UnreachableError",
    "UsageError",
    "UserCodeError",
    "Violation",
    "known",
    "nearest",
]

_LONGEST_NAME = 200  # characters; finding the nearest name to a text takes time by its length


class HeronError(Exception):
    """The root of every error that Heron raises on purpose."""


class UsageError(HeronError):
    """The caller asked for something wrong; nothing was changed."""


class TopologyError(UsageError):
    """The author's topology does not verify."""


class ConfigError(UsageError):
    """A key is unknown or its value is not acceptable."""


class PluginError(UsageError):
    """A driver is missing, ambiguous, of another contract version, or does not import."""


class MissingDriverError(PluginError):
    """No installed distribution provides the driver; `distribution` is the distribution to install, "" if unknown."""

    def __init__(self, message: str, distribution: str = "") -> None:
        super().__init__(message)
        self.distribution = distribution


class AccessError(UsageError):
    """A key does not permit the request."""


class RefusedError(UsageError):
    """A running topology refuses a request, with the reason."""


class StateError(HeronError):
    """The state manager refuses a request."""


class StateConflictError(StateError):
    """Another process changed or holds the node."""


class StateUnavailableError(StateError):
    """The store does not answer; whether the change was made is unknown."""


class NewerFormatError(StateError):
    """A document has a format that only a newer version of heron-core reads."""


class UnreachableError(HeronError):
    """A running topology does not answer; whether the request was carried out is unknown."""


class PackingError(HeronError):
    """The instances do not fit into their containers."""


class SchedulerError(HeronError):
    """Containers cannot be started, changed or stopped."""


class HostsNotAvoidedError(SchedulerError):
    """The scheduler cannot keep containers away from hosts. Nothing was changed."""


class PackageError(HeronError):
    """A topology package cannot be made, moved or trusted."""


class CheckpointError(HeronError):
    """A checkpoint cannot be stored, loaded, or used by this topology."""


class TornCheckpointError(CheckpointError):
    """An object of a checkpoint is cut or changed; another attempt to load it cannot succeed."""


class KeyedStateError(HeronError):
    """A state backend cannot hold or return the state of a task."""


class StoreError(HeronError):
    """A store cannot keep, show or read a view."""


class ConnectorError(HeronError):
    """A source or sink of a pipeline refuses to be read or written; the message names the remedy."""


class SinkError(HeronError):
    """A monitoring system does not accept records.

    `lost` is the number of records that are gone; they are counted under `reason`, a word such as ``unsent``. 0 means
    that all records are kept for a later attempt.
    """

    def __init__(self, message: str, *, lost: int = 0, reason: str = "failed") -> None:
        super().__init__(message)
        self.lost = lost
        self.reason = reason


class Violation(enum.StrEnum):
    """Which check of received bytes has failed. Receivers check in this order, and count violations by these words."""

    VERSION = "version"  # no whole header, or that of another wire version
    KIND = "kind"  # a kind of frame or segment, or a message, that nobody sends on this link
    SIZE = "size"  # above a limit
    CONTENT = "content"  # the bytes do not decode
    SESSION = "session"  # not now: before the hello, of another session, repeated, for a task of another process


class RemoteProtocolError(HeronError):
    """The peer broke the rules of the wire; its session ends. `violation` is the check that failed."""

    def __init__(self, message: str, violation: Violation = Violation.CONTENT) -> None:
        super().__init__(message)
        self.violation = violation


class IllegalTransitionError(HeronError):
    """A state machine received an event that its table does not have; nothing was changed."""


class TopologyFailedError(HeronError):
    """The topology ran and failed."""


class UserCodeError(HeronError):
    """A failure inside a component.

    Attributes:
        part: the part of the component that failed, such as an operator of a pipeline; failures of different parts are
            shown separately, also if they have one place. Empty for the component as a whole.
        place: the author's file and line, if the traceback has stayed in another process; otherwise empty.
        exception: the class of the exception if it is one of another language; the message begins with it. Otherwise
            empty.
        trace: what is shown in the place of the traceback, whose lines are the engine's: the stack trace of another
            language, or nothing. None: the traceback is shown.
    """

    part: str = ""
    place: str = ""
    exception: str = ""
    trace: str | None = None


class EmitError(UserCodeError):
    """An emit that names an unknown stream or task, or has the wrong number of fields."""


class SerializationError(UserCodeError):
    """A value cannot be encoded for another process."""


class LimitExceededError(HeronError):
    """A limit was exceeded; the message names its key, the value and the limit."""


def nearest(name: object, choices: Iterable[str]) -> str:
    """Return ``" (nearest: 'split')"`` when a known name is close to `name`, else "" (also if `name` is no text)."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return ""
    import difflib  # noqa: PLC0415  # every process imports this module, and few have such a message

    close = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.5)
    return f" (nearest: {close[0]!r})" if close else ""


def known(choices: Iterable[str]) -> str:
    """Return the choices as ``'a', 'b', 'c'``, sorted, or ``none``."""
    return ", ".join(repr(choice) for choice in sorted(choices)) or "none"
