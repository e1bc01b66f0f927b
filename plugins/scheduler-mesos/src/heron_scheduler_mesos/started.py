"""A container that the supervisor has started, until it hears of its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from heron.clock import monotonic_s
from heron.driver_kit.child_processes import ProcessIdentity
from heron_scheduler_kit.attempt_process import Note
from heron_scheduler_kit.executors import Exit
from heron_scheduler_mesos.offers import Waiting
from heron_scheduler_mesos.tasks import Task, TaskPhase

__all__ = ["ReadNote", "StartedContainer"]

ReadNote = Callable[[Task], Note | None]
"""Returns the note of a task; it may wait for an agent that is away."""

_NOTE_S = 5.0  # without a note, a task that has run so long counts as up
_EXITED = "exited with status"  # in the words of the executor of Mesos; a signal or a limit is not the task's own fault

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class StartedContainer:
    """What it needs, its spec, why agents refuse it, and what its process has noted. Times are monotonic seconds."""

    need: Waiting
    spec: dict[str, object]
    began_s: float = field(default_factory=monotonic_s)
    refusals: dict[str, str] = field(default_factory=dict)
    note: Note | None = None
    _ran_from_s: float = float("inf")
    _asked: Future[Note | None] | None = None
    _asked_last: bool = False

    @property
    def waiting(self) -> Waiting:
        """What it needs now."""
        return replace(self.need, waited_s=monotonic_s() - self.began_s)

    @property
    def identity(self) -> ProcessIdentity | None:
        """The process of its executor, once that is noted."""
        return ProcessIdentity(self.note.pid, self.note.start) if self.note is not None and self.note.pid else None

    def is_up(self, task: Task) -> bool:
        """Return whether its executor runs."""
        noted = self.note is not None or monotonic_s() - self._ran_from_s > _NOTE_S
        return task.phase is TaskPhase.RUNNING and noted

    def look(self, task: Task, read: ReadNote) -> Exit | None:
        """Read the note of a task that runs or has failed, without waiting; return the end of one that has ended."""
        now_s = monotonic_s()
        if self._asked is not None:
            if not self._asked.done():
                return None
            self.note, self._asked = self._asked.result() or self.note, None
        if task.phase is TaskPhase.RUNNING:
            self._ran_from_s = min(self._ran_from_s, now_s)
            if self.note is None and now_s - self._ran_from_s < _NOTE_S:
                self._ask(task, read)
        if task.phase is not TaskPhase.ENDED:
            return None
        if task.failed and not self._asked_last:
            self._asked_last = True
            self._ask(task, read)
            return None
        note = self.note if task.failed and self.note is not None and self.note.error else None
        own = task.failed and _EXITED in task.error and (note is None or note.own)
        return Exit(task.container_id, note.error if note else task.error, own, max(0.0, now_s - self._ran_from_s))

    def _ask(self, task: Task, read: ReadNote) -> None:
        future: Future[Note | None] = Future()
        threading.Thread(target=_answer, args=(future, replace(task), read), name="mesos-note", daemon=True).start()
        self._asked = future


def _answer(future: Future[Note | None], task: Task, read: ReadNote) -> None:
    note = None
    try:
        note = read(task)
    except Exception:  # whatever it is, the end of the task must be reported
        _log.exception("the note of task %s cannot be read from %s", task.task_id, task.agent)
    future.set_result(note)
