"""The two sides of a component in an instance: what an author's object calls, and what it gets called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from heron_compat_streamparse.hosting.tuples import Tuple

__all__ = ["AuthorBolt", "AuthorComponent", "AuthorSpout", "BoltHost", "Host", "SpoutHost"]


class Host(Protocol):
    """What both kinds of hosts carry out."""

    def report_error(self, error: Exception) -> None:
        """Show and count an error."""
        ...

    def set_metric(self, name: str, value: object) -> None:
        """Report a value of a metric."""
        ...


class BoltHost(Host, Protocol):
    """Carries out what a bolt calls; `HostedBolt` is the only one."""

    def send(
        self,
        values: Sequence[object],
        stream: str,
        anchors: Iterable[Tuple | str],
        direct_task: int | None,
        need_task_ids: bool,
    ) -> list[int] | None:
        """Emit a tuple."""
        ...

    def settle_ack(self, tup_id: str) -> None:
        """Ack a received tuple; an unknown id, or that of a tick, has no effect."""
        ...

    def settle_fail(self, tup_id: str) -> None:
        """Fail a received tuple; an unknown id, or that of a tick, has no effect."""
        ...


class SpoutHost(Host, Protocol):
    """Carries out what a spout calls; `HostedSpout` is the only one."""

    def emit(
        self,
        tup: Sequence[object],
        tup_id: object = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple; see `heron.api.BaseSpout.emit`."""
        ...


class AuthorComponent(Protocol):
    """What both kinds of components have."""

    def _attach(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Receive the attributes that pystorm sets after the handshake."""
        ...

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Prepare the task."""
        ...


class AuthorBolt(AuthorComponent, Protocol):
    """An author's bolt; the methods with an underscore do what pystorm's loop does around those of the author."""

    _host: BoltHost

    def _take(self, tup: Tuple) -> None:
        """Process a tuple."""
        ...

    def _take_tick(self, tick: Tuple) -> None:
        """Process a tick."""
        ...

    def _take_end(self) -> None:
        """Complete the work: no more tuples come."""
        ...

    def _batch_count(self) -> int:
        """Return how many batches wait."""
        ...

    def _take_failure(self) -> bool:
        """Fail what an exception of the last call concerns; return whether its tuple is still to be failed."""
        ...


class AuthorSpout(AuthorComponent, Protocol):
    """An author's spout."""

    _host: SpoutHost

    def next_tuple(self) -> None:
        """Emit the next tuples."""
        ...

    def ack(self, tup_id: object) -> None:
        """Receive the id of a complete tree."""
        ...

    def fail(self, tup_id: object) -> None:
        """Receive the id of a failed tree."""
        ...

    def activate(self) -> None:
        """Resume."""
        ...

    def deactivate(self) -> None:
        """Pause."""
        ...
