"""What the author of a connector provides for its contract suite: the other side of the server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun

__all__ = ["SinkTarget", "SourceFeed"]


class _Server(ABC):
    """The server behind a connector.

    Attributes:
        given: what the program needs to reach it, as JSON; the argument of the program's function.
    """

    given: Mapping[str, object]

    def stop_server(self) -> None:
        """Take the server away, as its death does. Called only if the suite has ``server_goes_away``."""
        raise NotImplementedError

    def start_server(self) -> None:
        """Bring it back, with what it had at the same address; return when it answers."""
        raise NotImplementedError


class SourceFeed(_Server):
    """Puts records into a server. `put` of different partitions is called from different threads."""

    @abstractmethod
    def put(self, partition: int, texts: Sequence[str]) -> None:
        """Put texts into a partition, in this order, and return when the server has them.

        A source that is a server itself has them when it has accepted them. Raise after 90 s at most: a test that has
        failed waits for this call.

        Args:
            partition: from 0 to ``partitions - 1`` of the suite.
            texts: each without a line end.
        """

    def began(self, run: HeronRun) -> None:
        """The topology has been started; a source that listens can be waited for here."""


class SinkTarget(_Server):
    """Reads what a sink has written, without the sink."""

    @abstractmethod
    def written(self) -> list[str]:
        """The texts that readers see now, those of one partition in their order; empty before the first."""
