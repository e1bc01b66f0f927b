"""What can go wrong with a log.

UnreachableError            bookies or ZooKeeper do not answer; a later call may succeed
    ClientDiedError         the JVM of the client has ended; the next call starts another one
ConnectorError              somebody has to act
    FencedError             another writer has taken the log over
    TruncatedError          a position was truncated away
    LogMissingError         there is no such log
"""

from __future__ import annotations

from heron.errors import ConnectorError, UnreachableError

__all__ = ["ClientDiedError", "FencedError", "LogMissingError", "TruncatedError"]


class ClientDiedError(UnreachableError):
    """The JVM of the client has ended; the message has the last lines of its stderr."""


class FencedError(ConnectorError):
    """Another writer has taken the log over, so this one stays out until its task is asked for a checkpoint."""


class TruncatedError(ConnectorError):
    """The position of a reader was truncated away."""


class LogMissingError(ConnectorError):
    """There is no log of this name."""
