"""What a spout sheds: the decision about a row of a stream, the counts, and the ids that `ack` has to hear of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

from heron.api.shedding import Shedding, SheddingPolicy
from heron.driver_kit.shedding_chances import KeyChances, PriorityChances, uniform_chances
from heron.ipc.documents.metric_names import KEPT_SHARE, SHED_COUNT
from heron.ipc.frames.frame import kept_option
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["StreamShedder", "TaskShedding"]

_LOOK_EVERY = 256  # rows that are shed in a series: then the runner looks at its commands


class DividedStream(Protocol):
    """What a flush by probability needs of its stream; see `heron.instance.output.out_stream.OutStream`."""

    rows: list[object]
    kept: bytes

    def take_rows(self, most: int | None = None) -> list[object]:
        """Takes the first rows of the buffer."""
        ...

    def segments_of(self, rows: list[object]) -> list[bytes]:
        """The segments of rows that were taken."""
        ...


class TaskShedding:
    """What the streams of a spout task have in common.

    `suspended`: rows are replays, which are never shed. `owes` says whether an id is that of a failed root which its
    author has still to emit again. `ids` collects what `ack` has to hear, if `wants_ids`. `look` is called now and then
    while all rows are shed.
    """

    def __init__(self, wants_ids: bool, owes: Callable[[object], bool], look: Callable[[], None]) -> None:
        self.total = 0
        self.ids: list[object] = []
        self.suspended = False
        self._wants_ids = wants_ids
        self._owes = owes
        self._look = look

    def sheds(self, tup_id: object) -> bool:
        """Notes a row that is shed; False if it must be kept."""
        if self.suspended or (tup_id is not None and self._owes(tup_id)):
            return False
        self.total += 1
        if tup_id is not None and self._wants_ids:
            self.ids.append(tup_id)
        if self.total % _LOOK_EVERY == 0:
            self._look()
        return True


class StreamShedder:
    """Decides about the rows of one stream. The generated emit compares the `chance` of a row with `keep`.

    With `divides`, kept rows have probabilities of their own: the emit appends `of_last` to `probabilities`. In
    `row_lists` are all lists of the stream with an entry for each row.
    """

    __slots__ = ("_policy", "_task", "chance", "count", "divides", "keep", "probabilities", "row_lists", "shedding")

    def __init__(
        self, shedding: Shedding, task: TaskShedding, task_id: int, priority_of: Callable[[object], object]
    ) -> None:
        self.shedding = shedding
        self.keep = 1.0
        self.count = 0
        self.probabilities: list[float] = []
        self.row_lists: list[list[object]] = []
        self._task = task
        self.divides = shedding.policy is SheddingPolicy.PRIORITY
        self._policy: PriorityChances | None = None
        self.chance: Callable[..., float] = uniform_chances(task_id)
        if self.divides:
            self.chance = self._policy = PriorityChances(
                (lambda given: given) if shedding.priority else priority_of, uniform_chances(task_id)
            )
        elif shedding.policy is SheddingPolicy.BY_KEY:
            self.chance = KeyChances(single=len(shedding.key) == 1)

    def chance_text(self, fields: Sequence[str]) -> str:
        """Source text for the number of a row whose values have the names ``v0``, ``v1`` …"""
        shedding = self.shedding
        if shedding.policy is SheddingPolicy.BY_KEY:
            key = [f"v{fields.index(name)}" for name in shedding.key]
            return f"chance({key[0] if len(key) == 1 else '(' + ', '.join(key) + ')'})"
        if shedding.priority:
            return f"chance(v{fields.index(shedding.priority)})"
        if shedding.policy is SheddingPolicy.PRIORITY:
            return "chance((" + "".join(f"v{place}, " for place in range(len(fields))) + "))"
        return "chance()"

    def shed(self, tup_id: object) -> bool:
        """Whether a row that is not within the share is shed; it is counted then."""
        shed = self._task.sheds(tup_id)
        self.count += shed
        return shed

    @property
    def of_last(self) -> float:
        """The probability with which the last row was kept."""
        return self._policy.of_last if self._policy is not None else self.keep

    def follow(self, share: float) -> None:
        """A period is over; `share` is that of the next one."""
        self.keep = share
        if self._policy is not None:
            self._policy.follow(share)

    def flush_parts(self, stream: DividedStream) -> list[bytes]:
        """Flushes rows in the order of their probabilities, so that each segment has one."""
        count = len(stream.rows)  # emits may append behind them meanwhile
        probabilities = self.probabilities[:count]
        del self.probabilities[:count]
        order = sorted(range(count), key=probabilities.__getitem__)
        for each in self.row_lists:
            each[:count] = [each[place] for place in order]
        segments: list[bytes] = []
        for probability, part in groupby(sorted(probabilities)):
            stream.kept = kept_option(probability)
            segments += stream.segments_of(stream.take_rows(len(list(part))))
        return segments

    def metrics(self, stream: str) -> list[Metric]:
        """What was shed on this stream, and the share that is kept."""
        labels = {"stream": stream}
        return [
            Metric(SHED_COUNT, MetricKind.COUNTER, "tuples", self.count, labels | {"reason": self.shedding.reason}),
            Metric(KEPT_SHARE, MetricKind.GAUGE, "1", self.keep, labels),
        ]
