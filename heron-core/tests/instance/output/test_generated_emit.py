"""Generated emits: every shape of stream, every grouping, and rejected rows, which change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from heron.api.context import TopologyContext
from heron.api.definition import GroupingDefinition, GroupingKind, StreamDefinition
from heron.api.stream import ICustomGrouping
from heron.author_text import short_text
from heron.errors import EmitError
from heron.instance.output.emitter import SpoutEmitter
from heron.instance.output.generated_emit import BOLT_SIGNATURE, SPOUT_SIGNATURE, make_add, make_emit
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_routes import CheckedGrouping, routes_of
from heron.instance.queues.data_queue import DataOut, Sleeper
from heron.ipc.frames.frame import parse_segment
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity
from heron.planner.key_group import key_group
from heron.planner.key_owners import even_owners
from heron_testing.builders import bolt, plan_index, spout, subscription, topology
from parts import decoded_rows, stream_origin

SPOUT_TASK = 1
CONSUMER_TASKS = (2, 3, 4)  # tasks 2 and 3 are in the spout's container, 4 is not


class Chosen(ICustomGrouping):
    """Sends a row to the tasks at the positions that its first value names."""

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        return

    def choose_tasks(self, values: Sequence[object]) -> list[int]:
        positions = values[0] if values else (0,)
        if isinstance(positions, str):
            return [CONSUMER_TASKS[0]]
        assert isinstance(positions, tuple)
        return [CONSUMER_TASKS[position] if position < 3 else 99 for position in positions]


def stream_of(*groupings: GroupingDefinition, arity: int = 1, batch_rows: int = 1000) -> OutStream:
    """A stream with `arity` fields and one consumer per grouping; consumer n has tasks 10 n + 2 to 10 n + 4."""
    fields = tuple(f"f{number}" for number in range(arity))
    stream = StreamDefinition("default", fields)
    consumers = [bolt(f"bolt{number}", subscription("spout", each)) for number, each in enumerate(groupings)]
    tasks: dict[str, list[int]] = {"spout": [SPOUT_TASK]}
    for number, consumer in enumerate(consumers):
        tasks[consumer.name] = [10 * number + task for task in CONSUMER_TASKS]
    elsewhere = {10 * number + CONSUMER_TASKS[-1]: 2 for number in range(len(consumers))}
    index = plan_index(topology(spout("spout", stream), *consumers), tasks, containers=elsewhere)
    routes = routes_of(index, SPOUT_TASK, stream, lambda _consumer, _subscription: Chosen())
    return OutStream(0, stream, routes, stream_origin(SPOUT_TASK, batch_rows=batch_rows))


def rows_by_task(segments: Sequence[bytes]) -> dict[int, list[object]]:
    found: dict[int, list[object]] = {}
    for data in segments:
        head = parse_segment(data, 0)
        for task in head.destinations:
            found.setdefault(task, []).extend(decoded_rows(data))
    return found


def adder(stream: OutStream, ids: list[object] | None = None) -> Callable[..., None]:
    return make_add(stream, lambda _values: None, ids=ids)


ALL = GroupingDefinition(GroupingKind.ALL)


@pytest.mark.parametrize("arity", [0, 1, 2, 3, 12])
@pytest.mark.parametrize("as_list", [True, False])
def test_every_arity_arrives_as_it_was_emitted(arity: int, as_list: bool) -> None:
    """This holds for lists and tuples. Later changes of an emitted list have no effect."""
    stream = stream_of(ALL, arity=arity)
    add = adder(stream)
    expected: list[tuple[object, ...]] = []
    for number in range(5):
        values: list[object] = [f"{number}-{position}" for position in range(arity)]
        expected.append(tuple(values))
        add(values if as_list else tuple(values))
        values.clear()
    assert rows_by_task(stream.flush()) == dict.fromkeys(CONSUMER_TASKS, expected)
    assert stream.flush() == []
    assert stream.emitted == 5


@pytest.mark.parametrize(
    ("arity", "values"),
    [(1, []), (1, ["a", "b"]), (2, ["a"]), (2, ["a", "b", "c"]), (0, ["a"]), (1, 5), (2, None), (1, "word")],
)
def test_wrong_values_are_rejected_and_leave_no_trace(arity: int, values: object) -> None:
    """The error names the stream and its fields, and the buffer stays consistent."""
    grouping = GroupingDefinition(GroupingKind.FIELDS, ("f0",)) if arity else ALL
    stream = stream_of(grouping, arity=arity)
    add = adder(stream)
    fine = tuple("x" for _ in range(arity))
    add(fine)
    with pytest.raises(EmitError, match=rf"stream 'default': emit of .* the stream declares {arity} fields"):
        add(values)
    add(fine)
    assert sum(map(len, rows_by_task(stream.flush()).values())) == 2 * (1 if arity else 3)


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize(
    "kinds",
    [[GroupingKind.ALL], [GroupingKind.FIELDS], [GroupingKind.PARTIAL_KEY, GroupingKind.DIRECT], [GroupingKind.CUSTOM]],
)
def test_a_text_that_is_refused_is_not_sent(kinds: list[GroupingKind], arity: int) -> None:
    """It fits as many fields as it has characters, and is found behind its append. Its id is not acked either."""
    keyed = (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY)
    stream = stream_of(*(GroupingDefinition(each, ("f0",) if each in keyed else ()) for each in kinds), arity=arity)
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), FrameLimits(1_000_000))
    emitter, ids = SpoutEmitter(stream.origin, out), list[object]()
    emitter.set_streams([stream], ids=ids)
    emit = emitter.specialised()
    assert emit is not None
    rows = [("before",) * arity, ("after",) * arity]
    stream.limit = stream.full_limit
    emit(rows[0], "before")
    stream.limit = 0  # as when the linger is over
    with pytest.raises(EmitError, match="emit of a str, not a list"):
        emit("ab"[:arity], "refused")
    stream.limit = stream.full_limit
    emit(rows[1], "after")
    sent = [row for found in rows_by_task(stream.flush()).values() for row in found]
    copies = 3 if kinds == [GroupingKind.ALL] else 1
    assert {row: sent.count(row) for row in sent} == dict.fromkeys(rows, copies)
    assert ids == ["before", "after"]


def test_fields_go_to_the_owner_of_their_key() -> None:
    """The key may have one field, or several in the order of the grouping, and there may be two consumers."""
    stream = stream_of(
        GroupingDefinition(GroupingKind.FIELDS, ("f1",)),
        GroupingDefinition(GroupingKind.FIELDS, ("f2", "f0")),
        arity=3,
    )
    add = adder(stream)
    rows = [(f"a{number % 5}", number % 7, number) for number in range(200)]
    for row in rows:
        add(row)
    found = rows_by_task(stream.flush())
    for row in rows:
        assert row in found[even_owners(1024, CONSUMER_TASKS)[key_group((row[1],), 1024)]]
        assert row in found[even_owners(1024, (12, 13, 14))[key_group((row[2], row[0]), 1024)]]
    assert sum(map(len, found.values())) == 400


@pytest.mark.parametrize("kind", [GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY])
@pytest.mark.parametrize("key", [["a", "list"], {1, 2}, object()])
def test_a_key_of_another_type_is_rejected_at_the_emit(kind: GroupingKind, key: object) -> None:
    """The message lists the allowed types, and no part of the row stays in the buffer."""
    stream = stream_of(GroupingDefinition(GroupingKind.FIELDS, ("f0",)), GroupingDefinition(kind, ("f1",)), arity=2)
    add = adder(stream)
    with pytest.raises(EmitError, match="cannot be grouped by"):
        add(["fine", key])
    add(["fine", "too"])
    assert sum(map(len, rows_by_task(stream.flush()).values())) == 2


def test_a_custom_grouping_chooses() -> None:
    """It may choose one task, several, one twice, or none. A task of another component is rejected by name."""
    stream = stream_of(GroupingDefinition(GroupingKind.CUSTOM), arity=1)
    add = adder(stream)
    for positions in ((0,), (1, 2), (2, 2), ()):
        add([positions])
    with pytest.raises(EmitError, match=r"Chosen chose tasks \[99\], which are not of 'bolt0'"):
        add([(0, 7)])
    assert rows_by_task(stream.flush()) == {2: [((0,),)], 3: [((1, 2),)], 4: [((1, 2),), ((2, 2),)]}
    empty = stream_of(GroupingDefinition(GroupingKind.CUSTOM), arity=0)
    adder(empty)([])
    assert rows_by_task(empty.flush()) == {2: [()]}


class Giving(ICustomGrouping):
    """Chooses what the test gives."""

    def __init__(self, given: object) -> None:
        self.given = given

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        return

    def choose_tasks(self, values: Sequence[object]) -> list[int]:
        return self.given  # type: ignore[return-value]  # mistakes, too


@pytest.mark.parametrize(
    ("given", "tasks"),
    [
        ([3], (3,)),
        ((3, 4, 3), (3, 4)),
        ([], ()),
        ([np.int64(3), np.uint8(4)], (3, 4)),
        (np.array([3, 4]), (3, 4)),
        (iter([4]), (4,)),
    ],
    ids=short_text,
)
def test_a_grouping_may_choose_any_integers(given: object, tasks: tuple[int, ...]) -> None:
    """They become ints: task ids that are arrays' scalars would fail at the flush."""
    chosen = CheckedGrouping(Giving(given), "sink", (3, 4))(("a",))
    assert chosen == tasks
    assert {type(each) for each in chosen} <= {int}


@pytest.mark.parametrize(
    "given", [[3.0], ["3"], "34", [True], [np.True_], [[3]], [None], None, 3, [1], [3, 9], object()], ids=short_text
)
def test_a_grouping_that_chooses_no_task_of_its_consumer_is_named(given: object) -> None:
    """With what it chose and the allowed tasks; at the flush nobody would know which emit it was."""
    with pytest.raises(EmitError, match=r"custom grouping Giving chose .*sink.*\[3, 4\]"):
        CheckedGrouping(Giving(given), "sink", (3, 4))(("a",))


@pytest.mark.parametrize("given", ["ada", ("ada", "hunter2"), [{"name": "ada"}], b"ada"], ids=short_text)
def test_what_a_grouping_chose_is_named_by_its_class(given: object) -> None:
    """A grouping that returns the values of its tuple would show them."""
    with pytest.raises(EmitError, match=r"Giving chose a (str|dict), which is not|chose tasks \[97") as caught:
        CheckedGrouping(Giving(given), "sink", (3, 4))(("a",))
    assert "ada" not in str(caught.value)


def test_direct_rows_go_only_to_the_named_task() -> None:
    """The general emit sets the task for its call. A row without a task would go nowhere, and is refused."""
    stream = stream_of(GroupingDefinition(GroupingKind.DIRECT), arity=1)
    add = adder(stream)
    stream.direct = (3,)
    add(["a"])
    stream.direct = ()
    with pytest.raises(EmitError, match=r"nobody receives this tuple, .* give direct_task, one of \[2, 3, 4\]"):
        add(["b"])
    assert rows_by_task(stream.flush()) == {3: [("a",)]}


def test_the_remaining_groupings() -> None:
    """These are all, lowest, local or shuffle, and shuffle."""
    for kind, expected in (
        (GroupingKind.LOWEST, {2: 60}),
        (GroupingKind.LOCAL_OR_SHUFFLE, {2: 30, 3: 30}),
        (GroupingKind.SHUFFLE, {2: 20, 3: 20, 4: 20}),
        (GroupingKind.NONE, {2: 20, 3: 20, 4: 20}),
    ):
        stream = stream_of(GroupingDefinition(kind))
        add = adder(stream)
        for number in range(60):
            add([number])
        assert {task: len(rows) for task, rows in rows_by_task(stream.flush()).items()} == expected, kind


def test_a_batch_for_all_is_encoded_once() -> None:
    """One segment has all destinations."""
    stream = stream_of(ALL, GroupingDefinition(GroupingKind.LOWEST))
    adder(stream)(["a"])
    (only,) = stream.flush()
    assert parse_segment(only, 0).destinations == (2, 3, 4, 12)


def test_a_stream_without_consumers_counts_and_sends_nothing() -> None:
    """Emits on it are valid."""
    stream = stream_of()
    adder(stream)(["a"])
    assert stream.flush() == []
    assert stream.emitted == 1


def test_a_full_log_overflows_at_once() -> None:
    """A process() that emits a million rows must not collect them all."""
    stream = stream_of(ALL, batch_rows=4)
    sizes: list[int] = []

    def overflow(_values: object) -> None:
        sizes.append(len(stream.rows))
        stream.flush()

    add = make_add(stream, overflow, ids=None)
    for number in range(50):
        add([number])
    assert sizes[0] <= 4
    assert sum(sizes) + len(stream.rows) == 50
    assert max(sizes) <= stream.limit == 12  # 4 rows for each of 3 destinations


def test_ids_are_kept_if_there_is_a_list_for_them() -> None:
    """Only emits that have an id and succeed append to the list."""
    ids: list[object] = []
    stream = stream_of(ALL)
    add = adder(stream, ids)
    add(["a"], "id-a")
    add(["b"])
    with pytest.raises(EmitError):
        add(["c", "d"], "id-c")
    assert ids == ["id-a"]


@pytest.mark.parametrize("signature", [SPOUT_SIGNATURE, BOLT_SIGNATURE])
def test_the_generated_emit_passes_everything_else_on(signature: str) -> None:
    """The guard compares identity, so it also passes on an equal but distinct name of the default stream."""
    stream = stream_of(ALL)
    calls: list[tuple[object, ...]] = []

    def slow(*arguments: object) -> list[int]:
        calls.append(arguments)
        return [7]

    emit = make_emit(stream, lambda _values: None, slow, signature, ids=None)
    assert emit(["a"]) is None
    assert emit(["a"], stream="other") == [7]
    assert emit(["a"], direct_task=3) == [7]
    assert emit(["a"], need_task_ids=True) == [7]
    assert emit(["a"], stream="".join(["def", "ault"])) == [7]
    assert len(stream.rows) == 1
    assert len(calls) == 4
    assert calls[1][-2:] == (3, False)
    assert calls[2][-2:] == (None, True)
