"""What a component emits into. The engine hands one to each component; without it, every call is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn, Protocol

from heron.api.tuple import Tuple
from heron.errors import EmitError

__all__ = ["BoltCollector", "SpoutCollector", "ThreadsafeCollector", "UnboundCollector"]


class SpoutCollector(Protocol):
    """Where a spout's emits go; belongs to the thread that calls `next_tuple`."""

    def emit(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits; the ids of the receiving tasks when `need_task_ids`, else None."""
        ...

    def end(self) -> None:
        """This task will make no new root."""
        ...


class BoltCollector(Protocol):
    """Where a bolt's emits, acks and fails go; belongs to the thread that calls `process`."""

    def emit(
        self,
        values: Sequence[object],
        stream: str = "default",
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits; the ids of the receiving tasks when `need_task_ids`, else None."""
        ...

    def ack(self, tup: Tuple) -> None:
        """This tuple is done with."""
        ...

    def fail(self, tup: Tuple) -> None:
        """This tuple failed."""
        ...


class ThreadsafeCollector(Protocol):
    """What a component's own threads use: each call is queued and carried out by the component's thread, in
    order.

    Errors of an emit therefore appear in the log and the metrics, not in the thread that asked for it.
    """

    def emit(
        self,
        values: Sequence[object],
        stream: str = "default",
        *,
        tup_id: object = None,
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
    ) -> None:
        """Queues an emit; `tup_id` is for spouts, `anchors` for bolts."""
        ...

    def ack(self, tup: Tuple) -> None:
        """Queues an ack; bolts only."""
        ...

    def fail(self, tup: Tuple) -> None:
        """Queues a fail; bolts only."""
        ...

    def end(self) -> None:
        """Queues the end of this spout task; spouts only."""
        ...


class UnboundCollector:
    """Stands in a component that no engine runs, so that the emit path needs no check for it."""

    __slots__ = ()

    def emit(self, values: Sequence[object], *_: object, **__: object) -> NoReturn:
        """Refused.

        Raises:
            EmitError: always.
        """
        self._refuse(f"emit({values!r:.60})")

    def ack(self, tup: Tuple) -> NoReturn:
        """Refused.

        Raises:
            EmitError: always.
        """
        self._refuse(f"ack({tup!r:.60})")

    def fail(self, tup: Tuple) -> NoReturn:
        """Refused.

        Raises:
            EmitError: always.
        """
        self._refuse(f"fail({tup!r:.60})")

    def end(self) -> NoReturn:
        """Refused.

        Raises:
            EmitError: always.
        """
        self._refuse("end()")

    @staticmethod
    def _refuse(call: str) -> NoReturn:
        msg = (
            f"{call}: this component has no collector; construct it with delegate=COLLECTOR, and where __init__ is "
            "overridden, let it call super().__init__(delegate)"
        )
        raise EmitError(msg)
