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
from heron.instance.inspection.observation import TaskObserver
from heron.kernel.role_spec import InstanceSpec
from heron.planner.physical_plan import PlanIndex
from heron.spi.inspected_task import FirstRows, InspectedTask
from heron.spi.serializer import UndecodableValue
from heron.spi.task_tuples import SampledTuple, TaskTuples, encode_tuples
from heron_task_inspector.value_text import ValueText

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Scalar

__all__ = ["TupleObserver", "TupleSample", "secrets_of"]

_SHORTEST_SECRET = 8  # of an environment variable: its name only suggests a secret


class TupleSample:
    """Up to `wanted` tuples of each direction. `is_full` is set when both are complete."""

    def __init__(self, wanted: int, spec: InstanceSpec, task: InspectedTask, text: ValueText) -> None:
        self.received: list[SampledTuple] = []
        self.emitted: list[SampledTuple] = []
        self.is_full = threading.Event()
        self._wanted = wanted
        self._component = spec.component
        self._task_id = spec.task_id
        self._task = task
        self._text = text

    def receive(self, key: tuple[str, str], task_id: int, first_rows: FirstRows, index: PlanIndex) -> None:
        """Task thread: takes rows of a batch, of each input its part."""
        topology = index.plan.topology
        number = min(self._wanted - len(self.received), max(1, self._wanted // max(1, self._task.inputs)))
        component, stream = key
        declared = topology.component(component).output(stream)
        fields = declared.fields if declared is not None else ()
        rows = first_rows(number) if number > 0 else ()
        self.received += self._sampled(component, task_id, stream, fields, rows)
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


class TupleObserver(TaskObserver):
    """Waits until the sample is full, or for some seconds."""

    what = "inspected (its tuples)"

    def __init__(self, spec: InstanceSpec, seconds: float, wanted: int, task: InspectedTask) -> None:
        self._spec = spec
        self._wanted = wanted
        self._task = task
        self._began_at_s, self._began_s = wall_s(), monotonic_s()
        self._sample = TupleSample(wanted, spec, task, ValueText(secrets_of(spec, os.environ.items())))
        super().__init__(seconds)

    def stop(self) -> None:
        """`TaskObserver.stop`."""
        self._sample.is_full.set()
        super().stop()

    def _observe(self) -> bytes:
        self._task.sample = self._sample
        try:
            self._sample.is_full.wait(self.left_s())
        finally:
            self._task.sample = None
        spec, sample = self._spec, self._sample
        return encode_tuples(
            TaskTuples(
                topology=spec.topology,
                component=spec.component,
                task_id=spec.task_id,
                container_id=spec.container_id,
                incarnation=spec.incarnation,
                pid=os.getpid(),
                host=socket.gethostname(),
                began_at_s=self._began_at_s,
                lasted_s=round(monotonic_s() - self._began_s, 3),
                wanted=self._wanted,
                received=tuple(sample.received[: self._wanted]),
                emitted=tuple(sample.emitted[: self._wanted]),
            )
        )


def secrets_of(spec: InstanceSpec, variables: Iterable[tuple[str, str]]) -> list[str]:
    """The secrets that the process of a task knows: of its drivers, and of variables whose name says so."""
    found = [text for ref in (spec.checkpoint, *spec.state_backends) if ref is not None for text in ref.secrets]
    found += [text for name, text in variables if names_secret(name) and len(text) >= _SHORTEST_SECRET]
    return found
