"""The root class of spouts and bolts, and the collectors that they emit into.

The engine gives each component its collector. A component that was constructed without one refuses every call.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol

from heron.api.columns import Columns
from heron.api.plain_batch import PlainBatch
from heron.api.tuple import Tuple
from heron.author_text import class_name, number_or_class, short_text
from heron.errors import EmitError, UsageError, known, nearest

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["BaseComponent", "BoltCollector", "SpoutCollector", "ThreadsafeCollector", "UnboundCollector"]

_LEVELS = {
    "trace": logging.DEBUG,  # the lowest level of the standard library
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


class BaseComponent:
    """The root of spouts and bolts. The engine constructs each task's component with ``cls(delegate=collector)``."""

    columns: ClassVar[bool] = False
    """Whether the component emits columns; it then needs the plugin ``heron-serializer-arrow``."""

    author_place: str = ""
    """Where its author's code is, for errors without a line, if that is not the class: the lines of a pipeline."""

    def __init__(self, delegate: object = None) -> None:
        self.delegate = delegate

    @classmethod
    def uses_columns(cls) -> bool:
        """Return whether the component emits or receives columns."""
        return cls.columns is True  # an author's class may have had an attribute of this name

    @functools.cached_property
    def logger(self) -> logging.Logger:
        """The logger of the component, named ``module.Class``; authors may replace it."""
        return logging.getLogger(f"{type(self).__module__}.{type(self).__qualname__}")

    def log(self, message: str, level: str | None = None) -> None:
        """Log a message.

        Args:
            message: the text; percent signs have no meaning.
            level: ``trace``, ``debug``, ``info``, ``warn`` or ``error``; None is ``info``.

        Raises:
            UsageError: when the level is unknown.
        """
        number = _LEVELS.get(level or "info")
        if number is None:
            msg = f"log: unknown level {short_text(level)}{nearest(level, _LEVELS)}; known: {known(_LEVELS)}"
            raise UsageError(msg)
        self.logger.log(number, "%s", message, stacklevel=2)


class SpoutCollector(Protocol):
    """Receives the emits of a spout. Only the thread that calls `next_tuple` may use it."""

    def emit(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple; see `heron.api.BaseSpout.emit`."""
        ...

    def emit_columns(
        self,
        batch: Columns,
        tup_id: object = None,
        stream: str = "default",
        direct_task: int | None = None,
        ids: Sequence[object] | None = None,
    ) -> None:
        """Emit a batch of tuples as columns; see `heron.api.BaseSpout.emit_columns`."""
        ...

    def emit_plain(
        self, payload: bytes, rows: int, stream: str = "default", ids: Sequence[object] | None = None
    ) -> Sequence[tuple[object, ...]]:
        """Emit a batch that is encoded; see `heron.api.PlainSpout.emit_plain`."""
        ...

    def emit_watermark(self, time_s: float, idle: bool = False) -> None:
        """Emit a watermark; see `heron.api.BaseSpout.emit_watermark`."""
        ...

    def end(self) -> None:
        """Declare that this task makes no further root tuple."""
        ...

    def set_probability(self, probability: float) -> None:
        """Declare a probability; see `heron.api.BaseSpout.set_probability`."""
        ...

    def report_error(self, error: Exception) -> None:
        """Show and count an error; see `heron.api.BaseSpout.report_error`."""
        ...


class BoltCollector(Protocol):
    """Receives the emits, acks and fails of a bolt. Only the thread that calls `process` may use it."""

    def emit(
        self,
        values: Sequence[object],
        stream: str = "default",
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple; see `heron.api.BaseBolt.emit`."""
        ...

    def emit_columns(
        self,
        batch: Columns,
        stream: str = "default",
        anchors: Iterable[Tuple | RecordBatch] | None = None,
        direct_task: int | None = None,
    ) -> None:
        """Emit a batch of tuples as columns; see `heron.api.BaseBolt.emit_columns`."""
        ...

    def emit_plain(
        self,
        payload: bytes,
        rows: int,
        stream: str = "default",
        anchors: Sequence[tuple[PlainBatch | Tuple, Sequence[int]]] = (),
    ) -> Sequence[tuple[object, ...]]:
        """Emit a batch that is encoded; see `heron.api.PlainBolt.emit_plain`."""
        ...

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> None:
        """Ack or fail rows of a batch; see `heron.api.PlainBolt.settle_rows`."""
        ...

    def flush_if_due(self) -> bool:
        """Send what has waited for the linger; see `heron.api.PlainBolt.flush_if_due`."""
        ...

    def ack(self, tup: Tuple | RecordBatch) -> None:
        """Declare that the bolt has finished with a tuple or batch."""
        ...

    def fail(self, tup: Tuple | RecordBatch) -> None:
        """Declare that the bolt could not process a tuple or batch."""
        ...

    def set_probability(self, probability: float) -> None:
        """Declare a probability; see `heron.api.BaseBolt.set_probability`."""
        ...

    def report_error(self, error: Exception) -> None:
        """Show and count an error; see `heron.api.BaseBolt.report_error`."""
        ...


class ThreadsafeCollector(Protocol):
    """A collector for threads that a component starts itself; any thread may use it.

    Each call joins a queue, and the component's thread carries the calls out in order. An error of a queued call is
    therefore logged and counted; the calling thread does not see it. A call blocks while the queue is full, at 10,000
    calls.
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
        """Queue an emit; spouts may give `tup_id`, bolts `anchors`."""
        ...

    def ack(self, tup: Tuple) -> None:
        """Queue an ack; bolts only."""
        ...

    def fail(self, tup: Tuple) -> None:
        """Queue a fail; bolts only."""
        ...

    def end(self) -> None:
        """Queue the end of this spout task; spouts only."""
        ...

    def call(self, function: Callable[[], object]) -> None:
        """Queue a call of `function`. It runs in the component's thread, so it may use the component and its collector.

        Raises:
            UsageError: when `function` cannot be called.
        """
        ...


class UnboundCollector:
    """Refuses every call. It is the collector of a component without one, so that emits need no check."""

    __slots__ = ()

    def emit(self, values: Sequence[object], *_: object, **__: object) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"emit of a {class_name(values)}")

    def emit_columns(self, batch: Columns, *_: object, **__: object) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"emit_columns({type(batch).__name__})")

    def emit_plain(self, payload: bytes, rows: int, *_: object, **__: object) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"emit_plain of {rows} rows")

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"settle_rows of {len(places)} rows")

    def flush_if_due(self) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse("flush_if_due")

    def emit_watermark(self, time_s: float, idle: bool = False) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"emit_watermark({number_or_class(time_s)})")

    def set_probability(self, probability: float) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"set_probability({number_or_class(probability)})")

    def ack(self, tup: Tuple | RecordBatch) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"ack of a {class_name(tup)}")

    def fail(self, tup: Tuple | RecordBatch) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"fail of a {class_name(tup)}")

    def end(self) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse("end()")

    def report_error(self, error: Exception) -> NoReturn:
        """Refuse.

        Raises:
            EmitError: always.
        """
        self._refuse(f"report_error of a {class_name(error)}")

    @staticmethod
    def _refuse(call: str) -> NoReturn:
        msg = (
            f"{call}: this component has no collector; construct it with delegate=COLLECTOR, and call "
            "super().__init__(delegate) in an __init__ of your own"
        )
        raise EmitError(msg)
