"""The compiled emit and the generated one are twins: the same calls leave the same buffers, results and errors."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Callable, Sequence
from random import Random
from types import BuiltinFunctionType
from typing import cast

import pytest

from heron.api.definition import GroupingDefinition, GroupingKind, StreamDefinition
from heron.api.tuple import Tuple
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.acks.tracked_batch import UNTRACKED
from heron.instance.output import fast_emit
from heron.instance.output.generated_emit import BOLT_SIGNATURE, SPOUT_SIGNATURE, make_emit
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import routes_of
from heron.instance.output.tracked_stream import AnchoredStream, RootStream
from heron.planner.physical_plan import PlanIndex
from heron_speedups import compiled_emit
from heron_testing.builders import bolt, plan_index, spout, subscription, topology

KINDS = ("untracked", "with ids", "roots", "anchored")
GROUPINGS = {
    "all": [GroupingDefinition(GroupingKind.ALL)],
    "shuffle": [GroupingDefinition(GroupingKind.SHUFFLE)],
    "one key": [GroupingDefinition(GroupingKind.FIELDS, ("f0",))],
    "two keys": [
        GroupingDefinition(GroupingKind.FIELDS, ("f1",)),
        GroupingDefinition(GroupingKind.FIELDS, ("f1", "f0")),
    ],
}
RECEIVED = Tuple.source("words", "default", 7)


class Raising:
    """A value that cannot be a key, and an anchor that is none."""

    def __hash__(self) -> int:
        msg = "no hash"
        raise TypeError(msg)

    @property
    def _index(self) -> int:
        msg = "no index"
        raise ZeroDivisionError(msg)


class Values(list[object]):
    """An author's own list."""


class Tracker:
    """What an anchored stream asks; nothing here was received."""

    in_work = None
    corrections: list[bytes] = []  # noqa: RUF012  # never changed

    def __init__(self) -> None:
        self.wrong: list[object] = []

    def received(self, batch: object) -> object:
        return None


class Twin:
    """A stream with one of the two emits, and what its calls have done."""

    def __init__(self, kind: str, grouping: str, arity: int, *, compiled: bool) -> None:
        fields = tuple(f"f{number}" for number in range(arity))
        definition = StreamDefinition("default", fields)
        consumers = [bolt(f"bolt{at}", subscription("spout", each)) for at, each in enumerate(GROUPINGS[grouping])]
        tasks = {"spout": [1]} | {each.name: [10 * at + 2, 10 * at + 3] for at, each in enumerate(consumers)}
        index: PlanIndex = plan_index(topology(spout("spout", definition), *consumers), tasks)
        routes = routes_of(index, 1, definition, lambda _consumer, _subscription: pytest.fail("no custom grouping"))
        origin = StreamOrigin(1, 1, 1, 5, 1 << 20, 1 << 20, lambda _stream, _row, _error: None)
        self.did: list[object] = []
        self.ids: list[object] | None = [] if kind == "with ids" else None
        self.stream = OutStream(0, definition, routes, origin)
        if kind == "roots":
            self.stream = RootStream(0, definition, routes, origin, PendingRoots(lambda: 0.0))
        elif kind == "anchored":
            self.stream = AnchoredStream(0, definition, routes, origin, cast("object", Tracker()))  # type: ignore[arg-type]
        self.stream.limit = 5
        signature = BOLT_SIGNATURE if kind == "anchored" else SPOUT_SIGNATURE
        generated = make_emit(self.stream, self.overflow, self.slow, signature, ids=self.ids)
        self.emit: Callable[..., object] = generated
        if compiled:
            spouts = signature is SPOUT_SIGNATURE
            self.emit = fast_emit.fast_emit(generated, self.stream, self.overflow, self.ids, spout=spouts)
            assert isinstance(self.emit, BuiltinFunctionType)

    def slow(self, *arguments: object) -> list[int]:
        self.did.append(("slow", repr(arguments)))
        return [4]

    def overflow(self, values: object) -> None:
        self.did.append(("overflow", repr(values)))
        if values == ["stop"] * self.stream.arity:
            msg = "the author's values are refused"
            raise OverflowError(msg)
        self.stream.limit += 5

    def call(self, positional: Sequence[object], named: dict[str, object]) -> None:
        try:
            self.did.append(self.emit(*positional, **named))
        except Exception as error:
            self.did.append((type(error), str(error)))

    def left(self) -> list[object]:
        """What the calls have left in the buffer, and what they did."""
        picks = []
        for edge in self.stream.routes.keyed:
            tasks = {id(each): task for task, each in edge.memo.lists.items()}
            picks.append([tasks[id(pick.__self__)] for pick in edge.picks or ()])  # type: ignore[attr-defined]
        extras = getattr(self.stream, "ids", None) or self.ids
        if isinstance(self.stream, AnchoredStream):
            extras = [id(each) if isinstance(each, Tuple) else [*map(id, each)] for each in self.stream.anchors.parents]
        return [self.stream.rows, [*map(type, self.stream.rows)], picks, extras, self.did]


VALUES: Sequence[object] = ["a", "b", 3, 2.5, None, True, ("t",), "stop", Raising(), [1]]
IDS: Sequence[object] = [None, 0, "id", [1], Raising()]
ANCHORS: Sequence[object] = [
    *(None, [], [RECEIVED(UNTRACKED, (), 2)], (RECEIVED(UNTRACKED, (), 0),), [RECEIVED(None, (), -1)]),
    *([RECEIVED(UNTRACKED, (), 1), RECEIVED(UNTRACKED, (), 2)], [Raising()], [None], 5, "x"),
]
NAMES = ("stream", "direct_task", "need_task_ids", "unknown")
WRAPS: Sequence[Callable[[list[object]], object]] = [list, list, list, list, tuple, tuple, Values, str, len]


def a_call(draw: Random, kind: str, arity: int) -> tuple[list[object], dict[str, object]]:
    """The arguments of an emit: most are usual."""
    size = draw.choice([arity] * 8 + [arity + 1, max(0, arity - 1)])
    values = draw.choice(WRAPS)(["stop"] * size if draw.random() < 0.1 else draw.choices(VALUES, k=size))
    positional, named = [values], dict[str, object]()
    if draw.random() < 0.1:
        named[draw.choice(NAMES)] = draw.choice([None, "default", "other", 4, True, False])
    if kind == "anchored" and draw.random() < 0.7:
        named["anchors"] = draw.choice(ANCHORS)
    elif draw.random() < 0.4:
        named["tup_id"] = draw.choice(IDS)
    elif draw.random() < 0.4:
        positional.append(draw.choice(IDS))
    return positional, named


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("grouping", "arity"), [("all", 0), ("all", 1), ("shuffle", 3), ("one key", 1), ("one key", 4), ("two keys", 2)]
)
def test_the_same_calls_leave_the_same(kind: str, grouping: str, arity: int) -> None:
    """Whatever authors give: other lists, wrong numbers, values without a hash, copies as anchors, refused values."""
    for seed in range(40):
        draw = Random(f"{kind} {grouping} {arity} {seed}")
        generated = Twin(kind, grouping, arity, compiled=False)
        compiled = Twin(kind, grouping, arity, compiled=True)
        for _ in range(draw.randint(1, 20)):
            positional, named = a_call(draw, kind, arity)
            generated.call(positional, named)
            compiled.call(positional, named)
            assert compiled.left() == generated.left(), (seed, positional, named)


def test_a_list_that_is_emitted_may_change_afterwards() -> None:
    twin = Twin("untracked", "shuffle", 2, compiled=True)
    values = ["a", 1]
    twin.emit(values)
    values.clear()
    assert twin.stream.rows == [("a", 1)]


def test_an_emit_within_the_hash_of_a_key_keeps_rows_and_keys_together() -> None:
    """Code of an author runs while its key is looked up, and may emit too."""
    twin = Twin("roots", "one key", 1, compiled=True)

    class Nested(str):
        __slots__ = ()

        def __hash__(self) -> int:
            twin.emit(["inner"], tup_id=2)
            return str.__hash__(self)

    twin.call([["inner"]], {"tup_id": 1})
    twin.call([[Nested("outer")]], {"tup_id": 3})
    rows, _, picks, ids, _ = cast("list[list[object]]", twin.left())
    assert len(rows) == len(ids) == len(cast("list[object]", picks[0]))
    assert ids[-1] == 3


def test_a_stop_while_a_key_is_looked_up_is_not_lost() -> None:
    """The generated emit would look the key up again, and then nobody has asked for a stop."""

    class Stopping(str):
        asked = False
        __slots__ = ()

        def __hash__(self) -> int:
            if not Stopping.asked:
                Stopping.asked = True
                raise KeyboardInterrupt
            return str.__hash__(self)

    twin = Twin("roots", "one key", 1, compiled=True)
    with pytest.raises(KeyboardInterrupt):
        twin.emit([Stopping("word")], tup_id=1)
    assert twin.stream.rows == []


def test_a_replaced_emit_is_freed() -> None:
    """Each plan makes new ones, and their streams refer to each other in circles."""
    twin = Twin("roots", "one key", 1, compiled=True)
    gone = weakref.ref(twin)
    twin.did.append(twin.emit)
    del twin
    gc.collect()
    assert gone() is None


def test_calls_neither_leak_nor_lose_references() -> None:
    """The reference counts of what the author gave are those of the buffers."""
    twin = Twin("anchored", "one key", 1, compiled=True)
    word, anchor = "".join(["wo", "rd"]), RECEIVED(UNTRACKED, (), 0)
    twin.emit([word])  # the memo knows it now
    before = sys.getrefcount(word), sys.getrefcount(anchor)
    for _ in range(100):
        twin.stream.limit = 1000
        twin.emit([word], anchors=[anchor])
        twin.call([[word], "stream"], {})
        twin.call([[word]], {"anchors": [Raising()]})
    added = len(twin.stream.rows) - 1
    twin.stream.rows.clear()
    cast("AnchoredStream", twin.stream).anchors.parents.clear()
    twin.did.clear()
    assert added == 100
    assert (sys.getrefcount(word), sys.getrefcount(anchor)) == (before[0] - 1, before[1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"edges": (((), {}, None),)},
        {"edges": (((1,), {}, None),)},
        {"edges": (((0,), {}, ()),)},
        {"edges": tuple(((0,), {}, None) for _ in range(9))},
        {"extras": ()},
        {"kind": 3},
    ],
)
def test_arguments_that_would_read_elsewhere_are_refused(wrong: dict[str, object]) -> None:
    given: dict[str, object] = {"edges": (), "extras": None, "kind": 0} | wrong
    make = cast("Callable[..., object]", compiled_emit.make)
    with pytest.raises(ValueError, match=r"compiled_emit\.pyi"):
        make(len, object(), len, [], 1, given["edges"], "tup_id", given["extras"], given["kind"], None)


@pytest.mark.parametrize(("value", "state"), [("1", "left out by HERON_PURE"), ("0", "in use"), ("", "in use")])
def test_the_environment_leaves_it_out(monkeypatch: pytest.MonkeyPatch, value: str, state: str) -> None:
    monkeypatch.setenv("HERON_PURE", value)
    assert fast_emit.speedups().state == state


def test_another_contract_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel of another release must not be called with arguments that it does not know."""
    monkeypatch.setattr(compiled_emit, "CONTRACT", 2)
    found = fast_emit.speedups()
    assert found.make is None
    assert found.is_broken
    assert found.state == "heron-speedups has version 2 of the contract, and this heron-core needs 1"


def test_streams_that_choose_their_tasks_keep_the_generated_emit() -> None:
    for kind in (GroupingKind.DIRECT, GroupingKind.PARTIAL_KEY):
        GROUPINGS["other"] = [GroupingDefinition(kind, ("f0",) if kind is GroupingKind.PARTIAL_KEY else ())]
        twin = Twin("untracked", "other", 1, compiled=False)
        generated = cast("Callable[..., list[int] | None]", twin.emit)
        assert fast_emit.fast_emit(generated, twin.stream, twin.overflow, None, spout=True) is generated


def test_every_combination_is_compiled() -> None:
    """The cases above would compare the generated emit with itself."""
    for kind, (grouping, arity) in itertools.product(KINDS, [("all", 1), ("two keys", 2)]):
        assert isinstance(Twin(kind, grouping, arity, compiled=True).emit, BuiltinFunctionType)
