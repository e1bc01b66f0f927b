"""The routes of a task's output streams: which tasks of each consumer receive which rows.

`routes_of` reads the groupings from the physical plan. At a flush, one splitter per grouping divides the rows among
tasks. Groupings by key decide earlier, at the emit, so that a key that cannot be grouped by is rejected there: the emit
looks the key up in a bounded memo, which returns the `append` of the task's list, and the flush only carries the rows
to their lists. Pure, except for the author's custom groupings.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol, cast

from heron.api.definition import ComponentDefinition, GroupingKind, InputDefinition, StreamDefinition
from heron.api.stream import ICustomGrouping
from heron.author_text import class_name, number_or_class, short_text
from heron.errors import EmitError
from heron.planner.key_group import key_group
from heron.planner.physical_plan import PlanIndex

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = [
    "MEMO_LIMIT",
    "CheckedGrouping",
    "ChosenSplitter",
    "CustomGroupings",
    "FollowedRows",
    "KeyMemo",
    "KeySplitter",
    "KeyedEdge",
    "PartialKeyMemo",
    "ShuffleSplitter",
    "Splitter",
    "StreamRoutes",
    "as_task_id",
    "routes_of",
]

_BOOLS = frozenset({"bool", "bool_"})  # of numpy; older versions let them be an index

MEMO_LIMIT = 65_536
"""Keys that a memo holds before it is cleared: about 10 MB of short strings."""

Append = Callable[[object], None]

CustomGroupings = Callable[[str, InputDefinition], ICustomGrouping]
"""Gives the author's grouping object for a consumer's subscription, prepared with its tasks."""


class FollowedRows:
    """Follows some rows of a flush, ascending, to their places in the parts of tasks."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows
        self._places: dict[int, list[int]] = {}

    def place(self, row: int, task: int, place: int) -> None:
        """Notes the place of a row in the part of a task."""
        places = self._places.setdefault(task, [-1] * len(self.rows))
        places[self.rows.index(row)] = place

    def take(self, task: int) -> list[int]:
        """The place of each row in the part of a task, -1 for a row that is not there; forgets that part."""
        return self._places.pop(task, [])


class Splitter(Protocol):
    """Divides the rows of a flush among the tasks of one consumer."""

    def split(self, rows: list[object], followed: FollowedRows | None = None) -> Iterable[tuple[int, list[object]]]:
        """``(task id, rows)`` for each task that gets rows, each task's rows in the order of emission.

        `followed` learns the places of the rows that it follows.
        """
        ...


@dataclass(frozen=True, slots=True)
class KeyedEdge:
    """A subscription whose rows are placed at the emit, by the key in the fields at `positions`.

    Without `picks` there is only one task; the look-up in `memo` then only checks the key.
    """

    positions: tuple[int, ...]
    memo: KeyMemo | PartialKeyMemo
    picks: list[Append] | None


@dataclass(frozen=True, slots=True)
class StreamRoutes:
    """The tasks that receive the rows of a stream under one plan.

    `whole` receive every row. Each of `splitters` divides the rows. The generated emit fills the lists of `keyed`,
    `choosers` and `direct_picks`, which belong to splitters.
    """

    whole: tuple[int, ...] = ()
    splitters: tuple[Splitter, ...] = ()
    keyed: tuple[KeyedEdge, ...] = ()
    choosers: tuple[tuple[CheckedGrouping, list[Sequence[int]]], ...] = ()
    direct_picks: tuple[list[Sequence[int]], ...] = ()
    direct_tasks: frozenset[int] = frozenset()

    @property
    def needs_direct(self) -> bool:
        """Whether nobody receives a row that names no task, because all consumers subscribe with Grouping.DIRECT."""
        return bool(self.direct_picks) and not self.whole and len(self.splitters) == len(self.direct_picks)

    def row_lists(self) -> list[list[object]]:
        """The lists to which each emit appends an entry."""
        keyed = [edge.picks for edge in self.keyed if edge.picks is not None]
        return cast("list[list[object]]", [*keyed, *(picks for _, picks in self.choosers), *self.direct_picks])

    def take_back(self) -> None:
        """Removes what the last emit has noted for its row."""
        for picks in self.row_lists():
            picks.pop()

    @property
    def has_receivers(self) -> bool:
        """Whether any task may receive a row."""
        return bool(self.whole or self.splitters)


def routes_of(index: PlanIndex, task_id: int, stream: StreamDefinition, custom: CustomGroupings) -> StreamRoutes:
    """The routes of the rows that this task emits on this stream."""
    found = _Routes(index, task_id, stream, custom)
    component = index.tasks[task_id].component
    for consumer, subscription in index.plan.topology.consumers(component, stream.name):
        if index.tasks_of(consumer.name):
            found.add(consumer, subscription)
    return found.routes()


class _Routes:
    """The routes of one stream while its consumers are added."""

    def __init__(self, index: PlanIndex, task_id: int, stream: StreamDefinition, custom: CustomGroupings) -> None:
        self._index = index
        self._task_id = task_id
        self._stream = stream
        self._custom = custom
        self._whole: list[int] = []
        self._splitters: list[Splitter] = []
        self._keyed: list[KeyedEdge] = []
        self._choosers: list[tuple[CheckedGrouping, list[Sequence[int]]]] = []
        self._direct_picks: list[list[Sequence[int]]] = []
        self._direct_tasks: set[int] = set()

    def routes(self) -> StreamRoutes:
        """The routes to all consumers that were added."""
        return StreamRoutes(
            tuple(dict.fromkeys(self._whole)),
            tuple(self._splitters),
            tuple(self._keyed),
            tuple(self._choosers),
            tuple(self._direct_picks),
            frozenset(self._direct_tasks),
        )

    def add(self, consumer: ComponentDefinition, subscription: InputDefinition) -> None:
        """Adds the tasks of a consumer, as its grouping wants them."""
        tasks = self._index.tasks_of(consumer.name)
        match subscription.grouping.kind:
            case GroupingKind.ALL:
                self._whole.extend(tasks)
            case GroupingKind.LOWEST:
                self._whole.append(tasks[0])  # the index stays with an instance that moves; its task id does not
            case GroupingKind.SHUFFLE | GroupingKind.NONE:
                self._add_shuffle(tasks)
            case GroupingKind.LOCAL_OR_SHUFFLE:
                here = self._index.tasks[self._task_id].container_id
                local = tuple(task for task in tasks if self._index.tasks[task].container_id == here)
                self._add_shuffle(local or tasks)
            case GroupingKind.FIELDS | GroupingKind.PARTIAL_KEY:
                self._add_keyed(consumer.name, tasks, subscription)
            case GroupingKind.CUSTOM:
                choose = CheckedGrouping(self._custom(consumer.name, subscription), consumer.name, tasks)
                self._choosers.append((choose, self._add_chosen()))
            case GroupingKind.DIRECT:
                self._direct_picks.append(self._add_chosen())
                self._direct_tasks.update(tasks)

    def _add_shuffle(self, tasks: tuple[int, ...]) -> None:
        if len(tasks) == 1:
            self._whole.append(tasks[0])
        else:
            self._splitters.append(ShuffleSplitter(tasks, start=self._task_id))

    def _add_keyed(self, consumer: str, tasks: tuple[int, ...], subscription: InputDefinition) -> None:
        grouping = subscription.grouping
        positions = tuple(self._stream.fields.index(name) for name in grouping.fields)
        memo_class = KeyMemo if grouping.kind is GroupingKind.FIELDS else PartialKeyMemo
        memo = memo_class(self._index.key_owners(consumer), single=len(positions) == 1)
        if len(tasks) == 1:
            self._whole.append(tasks[0])
            self._keyed.append(KeyedEdge(positions, memo, None))
        else:
            splitter = KeySplitter(memo)
            self._splitters.append(splitter)
            self._keyed.append(KeyedEdge(positions, memo, splitter.picks))

    def _add_chosen(self) -> list[Sequence[int]]:
        splitter = ChosenSplitter()
        self._splitters.append(splitter)
        return splitter.picks


class CheckedGrouping:
    """The author's grouping of one consumer; a chosen task that is not the consumer's is an error."""

    def __init__(self, grouping: ICustomGrouping, consumer: str, tasks: tuple[int, ...]) -> None:
        self.name = type(grouping).__name__
        self._chose = f"custom grouping {self.name} chose"
        self._grouping = grouping
        self._consumer = consumer
        self._tasks = frozenset(tasks)

    def __call__(self, values: tuple[object, ...]) -> tuple[int, ...]:
        """The tasks that receive a tuple.

        Raises:
            EmitError: when they are not a series of integers, or one of them is not the consumer's.
        """
        chosen: object = self._grouping.choose_tasks(values)
        if type(chosen) is list and len(chosen) == 1 and type(task := chosen[0]) is int and task in self._tasks:
            return (task,)  # the usual case, before the general one, which takes three times as long
        return self._checked(chosen)

    def _checked(self, chosen: object) -> tuple[int, ...]:
        if not isinstance(chosen, Iterable):
            msg = f"{self._chose} {number_or_class(chosen)}, which is not a list of task ids; {self._allowed()}"
            raise EmitError(msg)
        tasks = tuple(dict.fromkeys(as_task_id(each, self._chose, self._allowed) for each in chosen))
        self.check(tasks)
        return tasks

    def _allowed(self) -> str:
        return f"the tasks of {self._consumer!r} are {sorted(self._tasks)}"

    def of_columns(self, batch: RecordBatch) -> object:
        """The task of each row, as the grouping gives it; None if it chooses row by row."""
        return self._grouping.choose_columns(batch)

    def check(self, chosen: Sequence[int]) -> None:
        """Checks chosen tasks.

        Raises:
            EmitError: when one of them is not the consumer's.
        """
        if not self._tasks.issuperset(chosen):
            strangers = sorted(set(chosen) - self._tasks)
            msg = (
                f"{self._chose} tasks {short_text(strangers)}, which are not of {self._consumer!r}; "
                f"its tasks are {sorted(self._tasks)}"
            )
            raise EmitError(msg)


def as_task_id(given: object, subject: str, allowed: Callable[[], str]) -> int:
    """The id of a task that the author's code names: an integer of any type, such as that of numpy, but no bool.

    Raises:
        EmitError: when it is something else; `subject` begins the message and `allowed` ends it.
    """
    if type(given) is int:
        return given
    if not isinstance(given, bool) and type(given).__name__ not in _BOOLS:
        try:
            return operator.index(given)  # type: ignore[arg-type]  # refused here
        except TypeError:
            pass
    msg = f"{subject} a {class_name(given)}, which is not a task id; {allowed()}"
    raise EmitError(msg)


class ShuffleSplitter:
    """Deals rows in turn. The first task changes with each flush, so that short flushes are spread too."""

    __slots__ = ("_next", "_tasks")

    def __init__(self, tasks: Sequence[int], start: int) -> None:
        self._tasks = tuple(tasks)
        self._next = start % len(self._tasks)

    def split(self, rows: list[object], followed: FollowedRows | None = None) -> Iterable[tuple[int, list[object]]]:
        """`Splitter.split`."""
        count = len(self._tasks)
        dealt = self.deal(len(rows))
        for row in () if followed is None else followed.rows:
            followed.place(row, dealt[row % count], row // count)  # type: ignore[union-attr]  # it has rows
        for offset, task in enumerate(dealt):
            yield task, rows[offset::count]

    def deal(self, parts: int) -> list[int]:
        """The tasks that the next `parts` go to, each once."""
        count, first = len(self._tasks), self._next
        self._next = (first + parts) % count
        return [self._tasks[(first + offset) % count] for offset in range(min(count, parts))]


class KeyMemo(dict[object, Append]):
    """Key to the `append` of its task's list. A missing key is computed, checked and remembered."""

    def __init__(self, owners: Sequence[int], *, single: bool) -> None:
        """`owners` are the tasks by key group."""
        super().__init__()
        self.owners = owners
        self.single = single
        self.lists: dict[int, list[object]] = {task: [] for task in sorted(set(owners))}

    def place(self, key: object) -> Append:
        """The result of the look-up, for a key that cannot be hashed.

        Raises:
            EmitError: when rows cannot be grouped by this key.
        """
        values = (key,) if self.single else key
        group = key_group(values, len(self.owners))  # type: ignore[arg-type]  # a key of several fields is a tuple
        return self.lists[self.owners[group]].append

    def __missing__(self, key: object) -> Append:
        append = self.place(key)
        if len(self) >= MEMO_LIMIT:
            self.clear()
        self[key] = append
        return append


class PartialKeyMemo:
    """Key to the less loaded of its two tasks (Nasir et al., ICDE 2015); load is the rows that this task has sent."""

    def __init__(self, owners: Sequence[int], *, single: bool) -> None:
        """`owners` are the tasks by key group."""
        self._owners = owners
        self._tasks = tuple(dict.fromkeys(owners))
        self._single = single
        self._pairs: dict[object, tuple[int, int]] = {}
        self._sent = dict.fromkeys(self._tasks, 0)
        self.lists: dict[int, list[object]] = {task: [] for task in self._tasks}

    def __getitem__(self, key: object) -> Append:
        return self._lighter(self._known_pair(key))

    def divided(self, key: object, rows: int) -> tuple[int, int, int]:
        """``(first task, second task, rows of the first)``: the rows that bring their loads nearest to each other."""
        first, second = self._known_pair(key)
        if first == second:
            of_first = rows
        else:
            of_first = min(rows, max(0, (rows + self._sent[second] - self._sent[first] + 1) // 2))
        self._sent[first] += of_first
        self._sent[second] += rows - of_first
        return first, second, of_first

    def _known_pair(self, key: object) -> tuple[int, int]:
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pair(key)
            if len(self._pairs) >= MEMO_LIMIT:
                self._pairs.clear()
            self._pairs[key] = pair
        return pair

    def place(self, key: object) -> Append:
        """`KeyMemo.place`."""
        return self._lighter(self._pair(key))

    def _lighter(self, pair: tuple[int, int]) -> Append:
        first, second = pair
        task = first if self._sent[first] <= self._sent[second] else second
        self._sent[task] += 1
        return self.lists[task].append

    def _pair(self, key: object) -> tuple[int, int]:
        values: tuple[object, ...] = (key,) if self._single else key  # type: ignore[assignment]  # see KeyMemo
        first = self._owners[key_group(values, len(self._owners))]
        others = [task for task in self._tasks if task != first] or [first]
        return first, others[key_group((*values, "second choice"), len(others))]


class KeySplitter:
    """Carries rows to the lists that their emits have picked."""

    __slots__ = ("memo", "picks")

    def __init__(self, memo: KeyMemo | PartialKeyMemo) -> None:
        self.memo = memo
        self.picks: list[Append] = []

    def split(self, rows: list[object], followed: FollowedRows | None = None) -> Iterable[tuple[int, list[object]]]:
        """`Splitter.split`; the first `picks` belong to the rows."""
        pairs = zip(self.picks, rows, strict=False)
        if followed is not None:
            self._carry_followed(pairs, followed)
        for pick, row in pairs:
            pick(row)
        del self.picks[: len(rows)]
        for task, chosen in self.memo.lists.items():
            if chosen:
                yield task, chosen.copy()
                chosen.clear()

    def _carry_followed(self, pairs: Iterator[tuple[Append, object]], followed: FollowedRows) -> None:
        """Carries the rows up to the last one that is watched; the list that has grown shows where each of these is."""
        lists, before = self.memo.lists, 0
        for number in followed.rows:
            for pick, row in islice(pairs, number - before):
                pick(row)
            sizes = {task: len(each) for task, each in lists.items()}
            for pick, row in islice(pairs, 1):
                pick(row)
            before = number + 1
            for task, each in lists.items():
                if len(each) > sizes[task]:
                    followed.place(number, task, sizes[task])


class ChosenSplitter:
    """Carries rows to the tasks that their emits have named (custom and direct groupings)."""

    __slots__ = ("picks",)

    def __init__(self) -> None:
        self.picks: list[Sequence[int]] = []

    def split(self, rows: list[object], followed: FollowedRows | None = None) -> Iterable[tuple[int, list[object]]]:
        """`Splitter.split`; the first `picks` belong to the rows."""
        by_task: dict[int, list[object]] = {}
        for number in () if followed is None else followed.rows:
            for task in self.picks[number]:
                followed.place(number, task, sum(task in tasks for tasks in self.picks[:number]))  # type: ignore[union-attr]
        for tasks, row in zip(self.picks, rows, strict=False):
            for task in tasks:
                by_task.setdefault(task, []).append(row)
        del self.picks[: len(rows)]
        return by_task.items()
