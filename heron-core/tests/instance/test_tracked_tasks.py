"""Spout and bolt on their task threads at least once; the test plays their stream manager."""

from __future__ import annotations

import pytest

from heron.api.bolt import Bolt
from heron.api.spout import Spout
from heron.api.stream import Stream
from heron.api.tuple import Tuple
from heron.errors import EmitError
from heron.instance.bolt_runner import BoltRunner
from heron.instance.queues.data_queue import SessionOpened
from heron.instance.spout_runner import SpoutRunner
from heron.ipc.frames.frame import (
    Encoding,
    OptionTag,
    option,
)
from parts import end_marker, tuple_segment
from parts.tracked_rest import BOLT, SPOUT, Around, Rest, first_time, sent_end


class ListSpout(Spout):
    """Emits the numbers in `todo` and ends at once; records acks and fails, and emits failed numbers again."""

    outputs = ("v",)
    count = 5

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.todo = list(range(self.count))
        self.outcomes: list[tuple[str, object]] = []

    def next_tuple(self) -> None:
        if self.todo:
            number = self.todo.pop(0)
            self.emit([number], tup_id=[number])  # an id that cannot be hashed
        else:
            self.end()

    def ack(self, tup_id: object) -> None:
        self.outcomes.append(("ack", tup_id))

    def fail(self, tup_id: object) -> None:
        self.outcomes.append(("fail", tup_id))
        assert isinstance(tup_id, list)
        self.todo += tup_id


def spout_of(rest: Rest, component: type[ListSpout] = ListSpout) -> ListSpout:
    runner = rest.run(SpoutRunner, component)
    assert isinstance(runner.component, ListSpout)
    return runner.component


def test_with_one_pending_root_each_root_waits_for_the_previous_one() -> None:
    """`topology.max.spout.pending: 1` is the smallest value."""
    rest = Rest("spout", first_time("fail", 2), sent_end, config={"topology.max.spout.pending": 1})
    spout = spout_of(rest)
    assert rest.most_in_flight == 1
    assert rest.events == [0, 1, 2, 3, 4, 2, "END"]
    assert spout.outcomes == [("ack", [0]), ("ack", [1]), ("fail", [2]), ("ack", [3]), ("ack", [4]), ("ack", [2])]
    assert (rest.task.metrics.acked, rest.task.metrics.failed_by) == (5, {"failed": 1})


FAN = ("default", "b", "c", "d")


class FanSpout(ListSpout):
    """Emits to four streams in turn, one tuple per call."""

    outputs = tuple(Stream(["v"], name) for name in FAN)  # type: ignore[assignment]  # fields of one, or streams
    count = 100

    def next_tuple(self) -> None:
        if self.todo:
            number = self.todo.pop(0)
            self.emit([number], tup_id=[number], stream=FAN[number % len(FAN)])
        else:
            self.end()


def test_the_streams_of_a_spout_share_the_limit_of_pending_roots() -> None:
    """The limit applies to the task. A limit per stream would multiply memory and replays."""
    limit = {"topology.max.spout.pending": 12}
    rest = Rest("spout", first_time("ack"), sent_end, FAN, config=limit)
    spout = spout_of(rest, FanSpout)
    assert rest.most_in_flight <= 12
    assert len(spout.outcomes) == 100
    more = iter(range(3))
    kept = Rest(
        "spout",
        lambda _: "keep",
        lambda rest: rest.most_in_flight >= 12 and next(more, None) is None,
        FAN,
        config=limit,
    )
    spout_of(kept, FanSpout)
    assert kept.most_in_flight == 12, "all of the limit is used"


def test_the_end_follows_the_last_tree() -> None:
    """`end` is called while all roots are in flight, and replays are valid until all trees are complete."""
    rest = Rest("spout", first_time("fail", 1, 4, 4), sent_end)
    spout = spout_of(rest)
    assert rest.events[:5] == [0, 1, 2, 3, 4]
    assert rest.events[-1] == "END"
    assert sorted(map(str, rest.events[5:-1])) == ["1", "4", "4"]
    assert [each for each in spout.outcomes if each[0] == "fail"] == [("fail", [1]), ("fail", [4]), ("fail", [4])]
    assert rest.task.metrics.complete_latency.value().counts != ()


class FailingSpout(ListSpout):
    """Its call fails after a tuple has failed."""

    broken = False

    def next_tuple(self) -> None:
        if not self.broken and any(how == "fail" for how, _ in self.outcomes):
            self.broken = True
            raise ValueError
        super().next_tuple()


def test_a_failed_call_does_not_count_as_a_call_without_emits(capsys: pytest.CaptureFixture[str]) -> None:
    """An ending spout is called again, because it may still emit its replay."""
    rest = Rest("spout", first_time("fail", 4), sent_end)
    spout_of(rest, FailingSpout)
    assert rest.events == [0, 1, 2, 3, 4, 4, "END"]
    assert "it is called again" in capsys.readouterr().err


def test_all_roots_fail_when_the_stream_manager_is_new() -> None:
    """All roots in flight fail at once, and outcomes of the old stream manager have no effect."""
    rest = Rest("spout", first_time("keep", *range(5)), sent_end)

    def until(rest: Rest) -> bool:
        if len(rest.events) == 5 and rest.ledgers.in_flight() == 5:
            rest.ledgers.forget(SPOUT)
            rest.gateway.data_in.put(SessionOpened(ended=False))
        return sent_end(rest)

    rest.until = until
    spout = spout_of(rest)
    assert spout.outcomes[:5] == [("fail", [number]) for number in range(5)]
    assert sorted(spout.outcomes[5:]) == [("ack", [number]) for number in range(5)]
    assert rest.task.metrics.failed_by == {"lost": 5}


def tracked(base: int, *values: object, more: bytes = b"", **changes: object) -> bytes:
    """A batch of the spout whose rows are its roots from `base` on."""
    options = option(OptionTag.BATCH_KEY, (base + 7).to_bytes(8, "little"))
    options += option(OptionTag.ROOT_BASE, ((SPOUT << 48) | base).to_bytes(8, "little"))
    rows = [(value,) for value in values]
    return tuple_segment(rows, (BOLT,), **({"source_task": SPOUT, "options": options + more} | changes))  # type: ignore[arg-type]  # arguments of a segment


def end() -> bytes:
    return end_marker((BOLT,), SPOUT)


def settled(rest: Rest, how: str = "acked") -> list[int]:
    """The roots that the bolt has acked or failed so far."""
    found = [each[1:] for each in rest.events if isinstance(each, tuple) and each[0] == how]
    return sorted(root for roots in found for root in roots)


class HandsOver(Bolt):
    """Keeps tuples; another thread acks them after the last batch."""

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.kept: list[Tuple] = []

    def process(self, tup: Tuple) -> None:
        self.kept.append(tup)


def test_acks_of_another_thread_leave_without_further_input() -> None:
    """They come through the thread-safe collector, after the last batch."""
    rest = Rest("bolt", first_time("ack"), lambda rest: settled(rest) == [10, 11, 12])
    rest.put(tracked(10, "a", "b", "c"))
    runner = BoltRunner(rest.task, Around(rest), HandsOver)
    play, collector = rest.play, rest.task.queued

    def play_and_ack() -> bool:
        bolt = runner.component
        while isinstance(bolt, HandsOver) and bolt.kept and rest.gateway.data_in.queued_bytes() == 0:
            collector.ack(bolt.kept.pop())
        return play()

    rest.play = play_and_ack  # type: ignore[method-assign]
    runner.run(ended=False)
    assert settled(rest, "failed") == []


class Raises(Bolt):
    """Acks each tuple, then raises for some."""

    def process(self, tup: Tuple) -> None:
        self.ack(tup)
        if tup.values[0] == "bad":
            raise ValueError(tup.values)


def test_an_exception_fails_its_tuple_and_the_others_are_acked(capsys: pytest.CaptureFixture[str]) -> None:
    """This holds even after an ack in the same call."""
    rest = Rest("bolt", first_time("ack"), lambda rest: len(settled(rest)) == 2)
    rest.put(tracked(10, "a", "bad", "c"))
    rest.run(BoltRunner, Raises)
    assert (settled(rest), settled(rest, "failed")) == ([10, 12], [11])
    assert "the tuple is failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("bad", "failed"),
    [
        (tracked(20, "x", "y", "z")[:-3] + b"\xff\xff\xff", [20, 21, 22]),  # does not unpickle: its roots are known
        (tracked(20, "x", options=option(OptionTag.BATCH_KEY, b"short")), []),  # its roots are not
        (tracked(20), []),
        (tracked(20, "x", source_task=99), [20]),  # the plan does not have its source
        (tracked(20, "x", stream=7), [20]),
        (tracked(20, "x", encoding=Encoding.ARROW), [20]),
    ],
)
def test_the_known_roots_of_an_unreadable_batch_fail(
    bad: bytes, failed: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest of the frame is processed."""
    rest = Rest("bolt", first_time("ack"), lambda rest: 30 in settled(rest))
    rest.put(tracked(10, "a"), bad, tracked(30, "b"))
    rest.run(BoltRunner, Raises)
    assert (settled(rest), settled(rest, "failed")) == ([10, 30], failed)
    capsys.readouterr()


class Stubborn:
    """Does not decode."""

    def __init__(self) -> None:
        self.left = 1

    def __setstate__(self, state: object) -> None:
        raise LookupError


def test_a_value_that_does_not_decode_fails_only_its_root(capsys: pytest.CaptureFixture[str]) -> None:
    """The bolt acks its neighbours, and keeps nothing of it."""
    rest = Rest("bolt", first_time("ack"), lambda rest: len(settled(rest)) + len(settled(rest, "failed")) == 6)
    rest.put(tracked(10, "a", Stubborn(), "c", Stubborn(), "e"), tracked(20, Stubborn()))
    rest.run(BoltRunner, Raises)
    assert (settled(rest), settled(rest, "failed")) == ([10, 12, 14], [11, 13, 20])
    metrics = rest.task.metrics
    assert (sum(metrics.executed.values()), metrics.acked, metrics.failed) == (3, 3, 3)
    assert metrics.ignored_acks == 0
    assert "of stream 'default' of 'spout'" in capsys.readouterr().err


def test_a_unit_fails_with_its_value_that_does_not_decode(capsys: pytest.CaptureFixture[str]) -> None:
    """A batch that was emitted with one id is one root."""
    rest = Rest("bolt", first_time("ack"), lambda rest: 30 in settled(rest))
    rest.put(tracked(10, "a", Stubborn(), more=option(OptionTag.UNIT, b"")), tracked(30, "b"))
    rest.run(BoltRunner, Raises)
    assert (settled(rest), settled(rest, "failed")) == ([30], [10])
    capsys.readouterr()


class Results(Raises):
    """Emits two results in `finish`, through its own `emit`."""

    outputs = ("v",)

    def emit(self, *arguments: object, **named: object) -> list[int] | None:
        return super().emit(*arguments, **named)  # type: ignore[arg-type]  # as an author may wrap it

    def finish(self) -> None:
        self.emit(["first"])
        self.emit(["second"])


@pytest.mark.parametrize("component", [Results, type("Plain", (Results,), {"emit": Bolt.emit})])
def test_tuples_of_finish_are_emitted_again_until_they_are_acked(component: type[Bolt]) -> None:
    """The bolt keeps them, and its end waits for them."""
    rest = Rest("bolt", first_time("fail", "first", "second", "second"), sent_end)
    rest.put(tracked(10, "a"), end())
    rest.run(BoltRunner, component)
    assert [each for each in rest.events if isinstance(each, str)] == [
        *("first", "second", "first", "second", "second", "END")
    ]
    assert settled(rest) == [10]


def test_tuples_of_finish_are_emitted_again_to_a_new_stream_manager() -> None:
    """This applies to all that were in flight through the old one."""
    rest = Rest("bolt", first_time("keep", "first", "second"), sent_end)
    rest.put(end())

    def until(rest: Rest) -> bool:
        if rest.events == ["first", "second"]:
            rest.ledgers.forget(BOLT)
            rest.gateway.data_in.put(SessionOpened(ended=False))
        return sent_end(rest)

    rest.until = until
    rest.run(BoltRunner, Results)
    assert rest.events == ["first", "second", "first", "second", "END"]


def test_a_finished_bolt_acks_repeated_tuples() -> None:
    """A spout that is restarted before its end is recorded emits everything again, and must be able to end again.

    This holds while the results wait for their acks: `process` is never called after `finish`.
    """
    rest = Rest("bolt", first_time("ack"), lambda rest: settled(rest) == [10, 50, 51, 60])
    rest.put(tracked(10, "a"), end())
    rest.put(tracked(50, "again", "bad"))

    def until(rest: Rest) -> bool:
        if sent_end(rest) and len(settled(rest)) == 3:
            rest.put(tracked(60, "later"))
        return settled(rest) == [10, 50, 51, 60]

    rest.until = until
    rest.run(BoltRunner, Results)
    assert rest.task.metrics.executed == {("spout", "default"): 1}


class Anchoring(Results):
    """Emits in `finish` under an object that is no tuple, a copy, and the tuple that it received."""

    def process(self, tup: Tuple) -> None:
        self.last = tup
        super().process(tup)

    def finish(self) -> None:
        with pytest.raises(EmitError, match="anchors has a int; give what was received"):
            self.emit(["none"], anchors=[7])
        with pytest.raises(EmitError, match="is a tuple itself; give a list"):
            self.emit(["itself"], anchors=self.last)
        with pytest.raises(EmitError, match=r"emit of a str, .*; emit \[value\] for one field"):
            self.emit("x")
        self.emit(["copy"], anchors=[Tuple(None, ("a",), -1)])
        self.emit(["own"], anchors=[self.last])


def test_anchors_of_finish_are_checked_and_join_no_tree(capsys: pytest.CaptureFixture[str]) -> None:
    """The received tuple is acked; what is refused in `process` is refused here too."""
    rest = Rest("bolt", first_time("ack"), sent_end)
    rest.put(tracked(10, "a"), end())
    rest.run(BoltRunner, Anchoring)
    assert [each for each in rest.events if isinstance(each, str)] == ["copy", "own", "END"]
    assert settled(rest) == [10]
    assert "anchor of Tuple(" in capsys.readouterr().err
