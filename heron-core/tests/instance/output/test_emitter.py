"""The output side of a task: streams, direct tasks, task ids, counts over plans, markers."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest

from heron.api.bolt import Bolt
from heron.api.context import ITaskHook
from heron.api.definition import StreamDefinition
from heron.api.task_hook import EmitInfo
from heron.api.tuple import Tuple, TupleHelper
from heron.author_text import traceback_text
from heron.errors import EmitError, HeronError, UsageError
from heron.instance.output.emitter import BoltEmitter, SpoutEmitter
from heron.instance.output.event_time import to_microseconds
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import (
    ChosenSplitter,
    KeyedEdge,
    KeyMemo,
    KeySplitter,
    ShuffleSplitter,
    StreamRoutes,
)
from heron.instance.queues.data_queue import DataOut, Sleeper
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import Marker, SegmentHead, SegmentKind, parse_segment
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity
from heron.planner.key_group import key_group
from heron.planner.key_owners import even_owners
from parts import decoded_columns, stream_origin

LIMITS = FrameLimits(1_000_000)


def origin_of(batch_rows: int = 1000) -> StreamOrigin:
    return stream_origin(incarnation=5, batch_rows=batch_rows)


def whole(origin: StreamOrigin, name: str = "default", number: int = 0, *tasks: int) -> OutStream:
    stream = OutStream(number, StreamDefinition(name, ("v",)), StreamRoutes(whole=tasks or (2,)), origin)
    stream.limit = stream.full_limit  # as within the linger of a flush
    return stream


def direct(origin: StreamOrigin, name: str = "direct") -> OutStream:
    splitter = ChosenSplitter()
    routes = StreamRoutes(splitters=(splitter,), direct_picks=(splitter.picks,), direct_tasks=frozenset({4, 5}))
    return OutStream(1, StreamDefinition(name, ("v",)), routes, origin)


def data_out(limit_bytes: int = 1_000_000) -> DataOut:
    return DataOut(Wakeup(), Sleeper(), QueueCapacity(limit_bytes, limit_bytes, 0.1), LIMITS)


def sent(out: DataOut) -> list[SegmentHead]:
    heads = []
    for item in out.items:
        assert not isinstance(item, Envelope)
        heads += [parse_segment(segment, 0) for segment in item[0]]
    out.items.clear()
    return heads


def test_the_first_row_and_a_row_after_the_linger_leave_at_once() -> None:
    """Without load, a tuple does not wait for others."""
    out, origin = data_out(), origin_of()
    emitter = SpoutEmitter(origin, out)
    emitter.set_streams([OutStream(0, StreamDefinition("default", ("v",)), StreamRoutes(whole=(2,)), origin)])
    emitter.emit([1])
    assert len(sent(out)) == 1
    emitter.emit([2])
    assert not out.items
    out.end_linger()  # the task thread is not in the author's code: only the limit changes
    assert not out.items
    emitter.emit([3])
    assert [head.rows for head in sent(out)] == [2]


def test_the_gateway_flushes_only_while_the_authors_code_runs() -> None:
    """A tuple waits no longer than the linger, even if the author's code blocks after the emit."""
    out, origin = data_out(), origin_of()
    emitter = SpoutEmitter(origin, out)
    emitter.set_streams([whole(origin)])
    emitter.emit([1])
    with emitter.lock.released():
        emitter.emit([2])
        assert not out.items
        emitter.flush_meanwhile()
        assert [head.rows for head in sent(out)] == [2]
    emitter.emit([3])
    emitter.flush_meanwhile()
    assert not out.items


def test_rows_that_the_gateway_could_not_flush_leave_before_the_authors_code_runs() -> None:
    """The timer of the linger fires once: if the task thread held the lock, the next call may block behind these rows.

    Rows that are emitted after such a flush wait for the next linger.
    """
    out, origin = data_out(), origin_of()
    emitter = SpoutEmitter(origin, out)
    emitter.set_streams([whole(origin)])
    emitter.emit([1])
    out.end_linger()
    assert not out.items
    with emitter.lock.released():
        assert [head.rows for head in sent(out)] == [1]
        emitter.emit([2])
        assert not out.items
    with emitter.lock.released():
        assert not out.items


def test_rows_emitted_during_flushes_of_the_gateway_are_sent_in_order() -> None:
    """The gateway takes prefixes while the task thread appends: no row is lost, repeated or misplaced."""
    out, origin = data_out(10**9), origin_of()
    emitter = SpoutEmitter(origin, out)
    memo = KeyMemo(even_owners(64, (5, 6, 7)), single=True)
    splitter = KeySplitter(memo)
    keyed = KeyedEdge((0,), memo, splitter.picks)
    routes = StreamRoutes(whole=(2,), splitters=(splitter,), keyed=(keyed,))
    emitter.set_streams([OutStream(0, StreamDefinition("default", ("v",)), routes, origin)])
    done = threading.Event()

    def gateway() -> None:
        while not done.is_set():
            emitter.flush_meanwhile()

    thread = threading.Thread(target=gateway)
    thread.start()
    for start in range(0, 60_000, 1000):
        with emitter.lock.released():
            for number in range(start, start + 1000):
                emitter.emit([number])
        emitter.flush()
    done.set()
    thread.join()
    got: dict[int, list[object]] = {}
    for item in out.items:
        assert not isinstance(item, Envelope)
        for data in item[0]:
            head = parse_segment(data, 0)
            (column,) = decoded_columns(data)
            got.setdefault(head.destinations[0], []).extend(column)
    assert got.pop(2) == list(range(60_000))
    assert sorted(number for numbers in got.values() for number in numbers) == list(range(60_000))  # type: ignore[type-var]
    for task, numbers in got.items():
        assert numbers == sorted(numbers)  # type: ignore[type-var]
        assert all(even_owners(64, (5, 6, 7))[key_group((number,), 64)] == task for number in numbers[:200])


def test_a_flush_is_one_item_of_the_queue() -> None:
    """One flush is one frame for any number of streams and tasks."""
    out, origin = data_out(), origin_of()
    emitter = SpoutEmitter(origin, out)
    emitter.set_streams([whole(origin), whole(origin, "other", 1, 6, 7)])
    for number in range(3):
        emitter.emit([number])
    emitter.emit(["x"], stream="other")
    assert emitter.pending_rows() == 4
    assert not out.items
    assert emitter.flush()
    assert len(out.items) == 1
    assert [(head.stream, head.rows, head.destinations) for head in sent(out)] == [(0, 3, (2,)), (1, 1, (6, 7))]
    assert not emitter.flush()
    assert not out.items


def test_an_unknown_stream_is_rejected_with_the_nearest_name() -> None:
    """A typing error is the usual reason."""
    emitter = BoltEmitter(origin_of(), data_out())
    emitter.set_streams([whole(emitter.origin, "words")])
    with pytest.raises(EmitError, match=r"unknown stream 'word' .*'words'.*declared: 'words'"):
        emitter.emit(["a"], stream="word")
    with pytest.raises(EmitError, match="unknown stream 'default'"):
        emitter.emit(["a"])


@pytest.mark.parametrize("given", ["ada", ["ada", "hunter2"], {"name": "ada"}])
def test_values_that_are_passed_by_mistake_are_not_shown(given: object) -> None:
    """Swapped arguments, for example: a stream is shown if its name is close to a declared one."""
    emitter = BoltEmitter(origin_of(), data_out())
    emitter.set_streams([whole(emitter.origin), direct(emitter.origin)])
    calls: list[Callable[..., object]] = [
        lambda: emitter.emit([1], given),  # type: ignore[arg-type]  # mistakes
        lambda: emitter.emit([1], stream="direct", direct_task=given),  # type: ignore[arg-type]
        lambda: emitter.report_error(given),  # type: ignore[arg-type]
        lambda: to_microseconds(given),
        lambda: Bolt.is_tick(given),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(HeronError, match=f"a {type(given).__name__}") as caught:
            call()
        assert "ada" not in traceback_text(caught.value)


def test_a_direct_task_must_be_one_of_a_direct_consumer() -> None:
    """Otherwise the tuple would be lost, or arrive at a task that does not expect it."""
    out = data_out()
    emitter = BoltEmitter(origin_of(), out)
    emitter.set_streams([whole(emitter.origin), direct(emitter.origin)])
    assert emitter.emit(["a"], stream="direct", direct_task=5, need_task_ids=True) == [5]
    for stream, allowed in (("direct", r"\[4, 5\]"), ("default", r"\[\]")):
        with pytest.raises(EmitError, match=f"direct_task is 9, which is not a task of a consumer .*{allowed}"):
            emitter.emit(["a"], stream=stream, direct_task=9)
    assert [head.destinations for head in sent(out)] == [(5,)]


@pytest.mark.parametrize("given", [5, np.int64(5), np.uint8(5)])
def test_a_direct_task_may_be_any_integer(given: int) -> None:
    """Ids often come from arrays."""
    out = data_out()
    emitter = BoltEmitter(origin_of(), out)
    emitter.set_streams([whole(emitter.origin), direct(emitter.origin)])
    tasks = emitter.emit(["a"], stream="direct", direct_task=given, need_task_ids=True)
    assert [(type(each), each) for each in tasks or ()] == [(int, 5)]


@pytest.mark.parametrize("given", [5.0, "5", True, np.True_, [5], None, object()])
def test_a_direct_task_of_another_type_is_refused_at_the_emit(given: object) -> None:
    """At the flush nobody would know which emit gave it."""
    emitter = BoltEmitter(origin_of(), data_out())
    emitter.set_streams([whole(emitter.origin), direct(emitter.origin)])
    with pytest.raises(EmitError, match=r"stream 'direct': .*\[4, 5\]"):
        emitter.emit(["a"], stream="direct", direct_task=given)  # type: ignore[arg-type]  # a mistake
    assert not emitter.flush()


@pytest.mark.parametrize("given", [None, ["direct"], 1])
def test_a_stream_that_is_no_name_is_refused(given: object) -> None:
    """With what is declared."""
    emitter = BoltEmitter(origin_of(), data_out())
    emitter.set_streams([whole(emitter.origin)])
    with pytest.raises(EmitError, match=r"emit to unknown stream, a \w+; declared: 'default'"):
        emitter.emit(["a"], stream=given)  # type: ignore[arg-type]  # a mistake


def test_a_wrong_ack_is_refused_or_named() -> None:
    """What is not a tuple raises; a copy is named with the author's line; the ack of a tick is neither."""
    emitter = BoltEmitter(origin_of(), data_out())
    received = Tuple.source("a", "default", 1)(None, ("x",), 3)
    for settle in (emitter.ack, emitter.fail):
        for wrong in (None, [received], "x", 3):
            with pytest.raises(UsageError, match="give what was received"):
                settle(wrong)
        settle(copy.copy(received))
        settle(pickle.loads(pickle.dumps(received)))  # our own bytes
        settle(TupleHelper.make_tick_tuple())
        settle(received)
    assert [len(emitter.acked), len(emitter.failed), len(emitter.wrong)] == [2, 2, 4]
    for error in emitter.wrong:
        assert "it is a copy, was emitted as a value, or was restored" in str(error)
        assert error.__traceback__ is not None
        assert error.__traceback__.tb_frame.f_code.co_filename == __file__


def test_task_ids_are_those_of_this_row() -> None:
    """This holds if earlier rows wait, and if the buffer is full at every row."""
    for batch_rows in (1, 1000):
        out, origin = data_out(), origin_of(batch_rows)
        emitter = SpoutEmitter(origin, out)
        splitter = ShuffleSplitter((7, 8), 0)
        emitter.set_streams(
            [OutStream(0, StreamDefinition("default", ("v",)), StreamRoutes((2,), (splitter,)), origin)]
        )
        emitter.emit(["before"])
        ids = [emitter.emit([number], need_task_ids=True) for number in range(4)]
        assert ids == [[2, 8], [2, 7], [2, 8], [2, 7]]
        assert emitter.emit(["after"]) is None


def test_counts_continue_under_a_new_plan() -> None:
    """The metric is a counter, so it must not decrease. Streams may be added and removed."""
    out, origin = data_out(), origin_of()
    emitter = SpoutEmitter(origin, out)
    emitter.set_streams([whole(origin), whole(origin, "other", 1)])
    for _ in range(3):
        emitter.emit(["a"])
    emitter.emit(["b"], stream="other")
    emitter.set_streams([whole(origin, "default", 0, 9)])
    assert len(sent(out)) == 2  # what was emitted under the old plan has left under it
    emitter.emit(["c"])
    assert (emitter.emitted("default"), emitter.emitted("other")) == (4, 1)
    emitter.set_streams([whole(origin), whole(origin, "other", 1)])
    emitter.emit(["d"], stream="other")
    emitter.flush()
    assert (emitter.emitted("default"), emitter.emitted("other")) == (4, 2)


def test_a_rejected_row_is_reported_and_the_others_are_sent() -> None:
    """Rows are encoded at the flush, after the emit of the row has returned."""
    rejected: list[tuple[str, object]] = []
    origin = origin_of()
    origin.rejected = lambda stream, row, _error: rejected.append((stream, row))
    out = data_out()
    emitter = SpoutEmitter(origin, out)
    emitter.set_streams([whole(origin)])
    bad = lambda: None  # noqa: E731  # a value that does not pickle
    for value in ("a", bad, "b"):
        emitter.emit([value])
    emitter.flush()
    assert rejected == [("default", bad)]
    assert sum(head.rows for head in sent(out)) == 2


def test_the_end_marker_follows_all_data() -> None:
    """It goes to every task downstream once, whichever streams the task reads."""
    out, origin = data_out(), origin_of()
    emitter = SpoutEmitter(origin, out)
    emitter.set_streams([whole(origin)])
    emitter.emit(["last"])
    emitter.send_marker(Marker.END, (2, 3))
    data, end = sent(out)
    assert (data.kind, end.kind, end.stream) == (SegmentKind.TUPLES, SegmentKind.MARKER, Marker.END)
    assert (end.destinations, end.source_task, end.incarnation) == ((2, 3), 1, 5)
    emitter.send_marker(Marker.END, ())
    assert not out.items


def test_an_emit_waits_for_room() -> None:
    """A process() that emits without end waits at the queue's limit until the gateway has sent data."""
    out, origin = data_out(limit_bytes=300), origin_of(batch_rows=1)
    emitter = BoltEmitter(origin, out)
    emitter.set_streams([whole(origin)])
    most = 0

    def gateway() -> None:
        nonlocal most
        for _ in range(100):
            while not out.items:
                pause.wait(0.0005)
            most = max(most, out.queued_bytes)
            item = out.items.popleft()
            assert not isinstance(item, Envelope)
            out.sent(item[1])

    pause = threading.Event()
    thread = threading.Thread(target=gateway)
    thread.start()
    for number in range(100):
        emitter.emit([number])
    thread.join(20)
    assert not thread.is_alive()
    assert most < 300 + 100


class Watching(ITaskHook):
    """Records what it sees."""

    def __init__(self) -> None:
        self.seen: list[EmitInfo] = []

    def emit(self, emit_info: EmitInfo) -> None:
        self.seen.append(emit_info)


def test_hooks_see_each_emit_and_disable_the_generated_one() -> None:
    """The generated emit does not call hooks."""
    emitter = SpoutEmitter(origin_of(), data_out())
    emitter.set_streams([whole(emitter.origin)])
    quick = emitter.specialised()
    assert quick is not None
    quick(["a"])
    hook = Watching()
    emitter.hooks = (hook,)
    assert emitter.specialised() is None
    emitter.emit(["b"])
    assert [(info.values, info.stream_id) for info in hook.seen] == [(("b",), "default")]
    assert emitter.emitted("default") == 2


def test_without_a_default_stream_there_is_no_generated_emit() -> None:
    """The general emit names the declared streams."""
    emitter = SpoutEmitter(origin_of(), data_out())
    emitter.set_streams([whole(emitter.origin, "words")])
    assert emitter.specialised() is None


def test_acks_fails_and_ends_are_recorded() -> None:
    """At most once, acks and fails are only counted."""
    bolt, spout = BoltEmitter(origin_of(), data_out()), SpoutEmitter(origin_of(), data_out())
    first, second = Tuple(None, (), 0), Tuple(None, (), 1)
    bolt.ack(first)
    bolt.fail(second)
    assert (bolt.acked, bolt.failed) == ([first], [second])
    spout.end()
    assert spout.ending


@pytest.mark.parametrize("text", ["a", b"a"])
def test_a_text_is_not_taken_for_its_characters(text: str | bytes) -> None:
    """`emit("a")` fits a stream of one field by luck, and `emit("ab")` does not: the first emit says so."""
    emitter = SpoutEmitter(origin_of(), data_out())
    stream = whole(origin_of())
    emitter.set_streams([stream])
    stream.limit = 0  # as a stream begins
    emit = emitter.specialised()
    assert emit is not None
    for each in (emit, emitter.emit):
        with pytest.raises(EmitError, match=r"emit of a (str|bytes), not a list.*; emit \[value\] for one field"):
            each(text)


def test_a_text_that_the_gateway_has_sent_is_not_refused() -> None:
    """A row that left between its emit and the check cannot be taken back, and an emit that raises sends nothing."""
    out, origin = data_out(), origin_of()
    emitter, stream = SpoutEmitter(origin, out), whole(origin)
    emitter.set_streams([stream])
    emit = emitter.specialised()
    assert emit is not None
    with emitter.lock.released():
        emit("a")
        emitter.flush_meanwhile()
        emitter._overflow_of(stream)("a")
    assert [head.rows for head in sent(out)] == [1]
