"""The errors of user code by component and name, with the counts that the metrics of the tasks bring. Pure.

A task sends the message and the traceback of an error once, and the count with each record. Counts are totals of one
incarnation, so late and repeated records change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heron.ipc.documents.metric_names import USER_ERROR_COUNT
from heron.ipc.documents.status import UserErrorStatus
from heron.spi.metricsink import Event, Histogram, MetricsRecord, Source

__all__ = ["UserErrorTable"]

_KEPT = 50  # as many as error texts in a status
_TOLD = ("exception", "place", "message", "trace")  # attributes of an event


@dataclass(slots=True)
class _TaskCount:
    """The count of one task: of its former incarnations, and of the present one."""

    incarnation: int = 0
    former: int = 0
    present: int = 0

    def take(self, incarnation: int, count: int) -> bool:
        """Takes a total of an incarnation; returns whether the count has grown."""
        if incarnation > self.incarnation:
            self.incarnation, self.former, self.present = incarnation, self.former + self.present, 0
        if incarnation < self.incarnation or count <= self.present:
            return False
        self.present = count
        return True


@dataclass(slots=True)
class _Known:
    """One error: its counts by task, its times in wall-clock seconds, and what its first event said."""

    counts: dict[int, _TaskCount] = field(default_factory=dict)
    first_at_s: float | None = None
    newest_at_s: float | None = None
    attributes: dict[str, str] = field(default_factory=dict)

    def total(self) -> int:
        return sum(each.former + each.present for each in self.counts.values())


class UserErrorTable:
    """The errors whose newest failures are the newest; at most 50."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Known] = {}

    def take(self, record: MetricsRecord) -> None:
        """Takes the errors of a record of a task."""
        for event in record.events:
            if event.name == "user-error" and event.attributes.get("error", ""):
                self._begin(record.source, event)
        for metric in record.metrics:
            if metric.name == USER_ERROR_COUNT and not isinstance(metric.value, Histogram):
                self._count(record, metric.labels.get("error", ""), round(metric.value))

    def statuses(self) -> tuple[UserErrorStatus, ...]:
        """Every error, in the order of its first report."""
        return tuple(
            UserErrorStatus(
                component,
                name,
                each.total(),
                {task: count.former + count.present for task, count in sorted(each.counts.items())},
                each.first_at_s,
                each.newest_at_s,
                **_named(name) | {key: each.attributes[key] for key in _TOLD if key in each.attributes},
            )
            for (component, name), each in self._known.items()
        )

    def _begin(self, source: Source, event: Event) -> None:
        key = (source.component, event.attributes["error"])
        if key not in self._known and len(self._known) >= _KEPT:
            del self._known[min(self._known, key=lambda each: self._known[each].newest_at_s or 0.0)]
        known = self._known.setdefault(key, _Known())
        if not known.counts or known.first_at_s is not None:  # else it is older than this topology manager
            known.first_at_s = min(event.at_s, known.first_at_s or event.at_s)
        known.attributes = known.attributes or event.attributes

    def _count(self, record: MetricsRecord, name: str, count: int) -> None:
        key = (record.source.component, name)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _KEPT:
                return
            known = self._known[key] = _Known()
        is_new = not known.attributes and record.source.task_id not in known.counts
        of_task = known.counts.setdefault(record.source.task_id, _TaskCount())
        if of_task.take(record.source.incarnation, count) and not is_new:
            at_s = record.at_s if known.total() > 1 or known.first_at_s is None else known.first_at_s
            known.newest_at_s = max(at_s, known.newest_at_s or at_s)


def _named(name: str) -> dict[str, str]:
    """Class and line, as the name of an error has them: ``process: KeyError at wc.py, line 3``."""
    head, _, place = name.rpartition(" at ")
    return {"exception": head.rpartition(": ")[2], "place": place} if head else {}
