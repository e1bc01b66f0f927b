"""What an inspector is given of its task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["FirstRows", "InspectedTask", "TaskIdentity", "TupleSampler"]


FirstRows = Callable[[int], Sequence[Sequence[object]]]
"""Returns the values of the first rows of a received batch; its argument limits their number."""


class TupleSampler(Protocol):
    """Takes tuples of a task. An inspector makes one, and sets it in `InspectedTask.sample`.

    The task calls it for each batch and each flush as long as it is set. A call must take at most 1 ms, and must not
    raise or keep the rows: the values belong to user code.
    """

    def receive(
        self, key: tuple[str, str], task_id: int, fields: Sequence[str], first_rows: FirstRows
    ) -> None:  # on the task thread
        """Take rows of a received batch; `key` is the component and the stream of the task that sent it."""
        ...

    def emit(self, stream: str, fields: Sequence[str], rows: Sequence[object]) -> None:
        """Take emitted rows, on the task or the gateway thread. A row of a stream with one field is the value."""
        ...

    def emit_columns(self, stream: str, fields: Sequence[str], batch: RecordBatch) -> None:
        """Take rows of a batch that was emitted as columns, on the task thread."""
        ...


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """The task that a process runs, as its answers name it; `incarnation` counts its processes."""

    topology: str = ""
    component: str = ""
    task_id: int = 0
    container_id: int = 0
    incarnation: int = 0


def _no_wait(_calls: Iterable[CodeType]) -> str:
    return ""


@dataclass(slots=True, eq=False)
class InspectedTask:
    """A task as its inspector sees it. The task thread changes it at any time.

    - `identity` names the task. `secrets` are the texts of its drivers that no answer may contain.
    - `gateway_thread` is the identifier (`threading.get_ident`) of the thread that owns the sockets of the task. The
      component runs on the main thread of the process.
    - `engine_wait` says what the engine waits for in these calls of a thread, innermost first: ``input``, ``room for
      its output``, or "" when the engine does not wait for either.
    - `component` is the author's object, None before it is made. `states` returns the parts of each keyed state, by its
      name.
    - `inputs` and `outputs` are the numbers of its streams.
    - `sample` takes its tuples while an inspector sets it.
    """

    identity: TaskIdentity = TaskIdentity()
    secrets: tuple[str, ...] = ()
    gateway_thread: int = 0
    engine_wait: Callable[[Iterable[CodeType]], str] = _no_wait
    component: object = None
    states: Callable[[], Mapping[str, Sequence[object]]] = dict
    inputs: int = 0
    outputs: int = 0
    sample: TupleSampler | None = None
