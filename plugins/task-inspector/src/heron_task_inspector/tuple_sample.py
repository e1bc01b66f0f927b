"""The next tuples of a task, for somebody who wants to see them.

The task thread checks once for each batch, and for each flush, whether there is a sample to fill. So tuples cost
nothing while nobody asks.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from heron.clock import monotonic_s, wall_s
from heron.driver_kit.redaction import names_secret
from heron.spi.inspected_task import FirstRows, InspectedTask
from heron.spi.serializer import UndecodableValue
from heron.spi.task_tuples import SampledTuple, TaskTuples
from heron_task_inspector.value_text import ValueText

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Scalar

__all__ = ["TupleSample", "secrets_of", "tuples_of"]

_LOOK_S = 0.1  # how late it sees that the process ends
_SHORTEST_SECRET = 8  # of an environment variable: its name only suggests a secret


class TupleSample:
    """Up to `wanted` tuples of each direction. `is_full` is set when both are complete."""

    def __init__(self, wanted: int, task: InspectedTask, text: ValueText) -> None:
        self.received: list[SampledTuple] = []
        self.emitted: list[SampledTuple] = []
        self.is_full = threading.Event()
        self._wanted = wanted
        self._component, self._task_id = task.identity.component, task.identity.task_id
        self._task = task
        self._text = text

    def receive(self, key: tuple[str, str], task_id: int, fields: Sequence[str], first_rows: FirstRows) -> None:
        """Task thread: takes rows of a batch, of each input its part."""
        number = min(self._wanted - len(self.received), max(1, self._wanted // max(1, self._task.inputs)))
        rows = first_rows(number) if number > 0 else ()
        self.received += self._sampled(key[0], task_id, key[1], fields, rows)
        self._note()

    def emit(self, stream: str, fields: Sequence[str], rows: Sequence[object]) -> None:
        """Task or gateway thread: takes emitted rows. A row of a stream with one field is the value itself."""
        chosen = rows[: max(0, self._wanted - len(self.emitted))]
        values = ((each,) if len(fields) == 1 else each for each in chosen)
        self.emitted += self._sampled(self._component, self._task_id, stream, fields, values)  # type: ignore[arg-type]  # rows are tuples
        self._note()

    def emit_columns(self, stream: str, fields: Sequence[str], batch: RecordBatch) -> None:
        """Task thread: takes rows of a batch that was emitted as columns."""
        columns = [list(map(_value_of, column)) for column in batch.slice(0, self._wanted - len(self.emitted)).columns]
        rows = zip(*columns, strict=True)
        self.emitted += self._sampled(self._component, self._task_id, stream, fields, rows)
        self._note()

    def _sampled(
        self, component: str, task_id: int, stream: str, fields: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> list[SampledTuple]:
        text = self._text.of
        return [SampledTuple(component, task_id, stream, tuple(fields), tuple(map(text, fields, row))) for row in rows]

    def _note(self) -> None:
        received = not self._task.inputs or len(self.received) >= self._wanted
        if received and (not self._task.outputs or len(self.emitted) >= self._wanted):
            self.is_full.set()


def _value_of(scalar: Scalar) -> object:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError) as error:  # such as a date after the year 9999
        return UndecodableValue(str(scalar.type), error, "")


def tuples_of(task: InspectedTask, wanted: int, seconds: float, stop: threading.Event) -> TaskTuples:
    """The next tuples: until the sample is full, or for some seconds; `stop` ends it early."""
    began_at_s, began_s = wall_s(), monotonic_s()
    ends_s = began_s + seconds
    sample = TupleSample(wanted, task, ValueText(secrets_of(task.secrets, os.environ.items())))
    task.sample = sample
    try:
        while (left_s := ends_s - monotonic_s()) > 0 and not stop.is_set():
            if sample.is_full.wait(min(left_s, _LOOK_S)):
                break
    finally:
        task.sample = None
    identity = task.identity
    return TaskTuples(
        topology=identity.topology,
        component=identity.component,
        task_id=identity.task_id,
        container_id=identity.container_id,
        incarnation=identity.incarnation,
        pid=os.getpid(),
        host=socket.gethostname(),
        began_at_s=began_at_s,
        lasted_s=round(monotonic_s() - began_s, 3),
        wanted=wanted,
        received=tuple(sample.received[:wanted]),
        emitted=tuple(sample.emitted[:wanted]),
    )


def secrets_of(known: Iterable[str], variables: Iterable[tuple[str, str]]) -> list[str]:
    """The secrets that the process of a task knows: those of its drivers, and variables whose name says so."""
    return [*known, *(text for name, text in variables if names_secret(name) and len(text) >= _SHORTEST_SECRET)]
