"""Which key and which key group a task gets most often, from a sample of its input. Belongs to the task thread.

A count by key of all tuples would cost time for every tuple. A sample of a hundred rows a second shows every key that
can keep a task busy, and costs less than a thousandth of a processor. `heron.planner.key_balance` moves key groups by
the rates of tasks; the sample names the key for which moving groups cannot help.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from heron.api.definition import GroupingKind
from heron.errors import EmitError
from heron.instance.input.batch_reader import ReceivedBatch
from heron.ipc.documents.metric_names import HOT_GROUP_SHARE, HOT_KEY_SHARE
from heron.planner.key_group import key_group, key_groups_of
from heron.planner.physical_plan import PlanIndex
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["KeySample", "keyed_inputs"]

_ROWS_A_PERIOD = 100
_ROWS_A_BATCH = 10  # spread over the batch, because neighbours often have the same key
_PERIODS = 10
_LEAST_ROWS = 30  # with fewer, one key more or less decides
_LEAST_SHARE = 0.1  # below it, neither can make its task differ from the others
_LONGEST_TEXT = 64

_Key = tuple[object, ...]


def keyed_inputs(index: PlanIndex, component: str) -> dict[tuple[str, str], tuple[int, ...]]:
    """The positions of the key's fields, for each input of a component that is grouped by fields."""
    topology, found = index.plan.topology, {}
    for each in topology.component(component).inputs:
        stream = topology.component(each.component).output(each.stream)
        if each.grouping.kind is GroupingKind.FIELDS and stream is not None:
            positions = tuple(stream.fields.index(name) for name in each.grouping.fields)
            found[each.component, each.stream] = positions
    return found


class KeySample:
    """Takes some rows of each batch, until the next call of `metrics`."""

    __slots__ = ("_groups", "_left", "_now", "_periods", "_positions")

    def __init__(self, positions: Mapping[tuple[str, str], tuple[int, ...]], groups: int) -> None:
        """`positions` are those of `keyed_inputs`; `groups` is the topology's number of key groups."""
        self._positions = positions
        self._groups = groups
        self._left = _ROWS_A_PERIOD
        self._now: Counter[_Key] = Counter()
        self._periods: deque[Counter[_Key]] = deque(maxlen=_PERIODS)

    @classmethod
    def of(cls, index: PlanIndex, component: str) -> KeySample | None:
        """The sample of a component's task; None if no input has keys."""
        positions = keyed_inputs(index, component)
        return cls(positions, key_groups_of(index.plan.topology)) if positions else None

    def wants(self, batch: ReceivedBatch) -> bool:
        """Whether `look` takes rows of this batch."""
        return self._left > 0 and batch.source.key in self._positions

    def look(self, batch: ReceivedBatch) -> None:
        """Takes some rows of a batch, as far as the period permits."""
        if not self.wants(batch):
            return
        positions = self._positions[batch.source.key]
        columns, step = batch.columns(), max(1, batch.rows // _ROWS_A_BATCH)
        rows: Sequence[int] = range(0, batch.rows, step)[: self._left]
        if batch.undecodable:
            lost = {each.place for each in batch.undecodable}
            rows = [row for row in rows if row not in lost]
        self._left -= len(rows)
        try:
            self._now.update(tuple(columns[position][row] for position in positions) for row in rows)
        except TypeError:  # the author's own key type cannot be hashed
            self._left = 0

    def metrics(self) -> list[Metric]:
        """The largest shares in the last ten periods; a new period begins."""
        self._periods.append(self._now)
        self._now, self._left = Counter(), _ROWS_A_PERIOD
        keys: Counter[_Key] = Counter()
        for period in self._periods:
            keys.update(period)
        if keys.total() < _LEAST_ROWS:
            return []
        groups: Counter[int] = Counter()
        for key, rows in keys.items():
            try:
                groups[key_group(key, self._groups)] += rows
            except EmitError:
                continue
        return [
            *_share(HOT_KEY_SHARE, "key", {_text(key): rows for key, rows in keys.most_common(1)}, keys.total()),
            *_share(
                HOT_GROUP_SHARE, "group", {str(group): rows for group, rows in groups.most_common(1)}, keys.total()
            ),
        ]


def _share(name: str, label: str, rows: Mapping[str, int], total: int) -> list[Metric]:
    return [
        Metric(name, MetricKind.GAUGE, "1", count / total, {label: text})
        for text, count in rows.items()
        if count >= _LEAST_SHARE * total
    ]


def _text(key: _Key) -> str:
    text = ", ".join(str(each) for each in key)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
