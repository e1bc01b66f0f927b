"""Which calls are the same call again, and what a checkpoint keeps for that. Pure."""

from __future__ import annotations

import pytest

from heron_connector_scribe.batch import Batch, Fate
from heron_connector_scribe.entries import Entries
from heron_connector_scribe.intake import Intake
from heron_connector_scribe.retry_memory import Doubt, RetryMemory
from heron_testing.fake_clock import FakeClock

KEEP_S = 60.0


class Client:
    """Of a batch."""

    def __init__(self) -> None:
        self.fate = Fate.WAITING


def batch(digest: bytes = b"a", count: int = 3) -> Batch:
    return Batch(Entries.of(("web", 0, b"%d" % number) for number in range(count)), Client(), 100, 0.0, digest)


def memory(clock: FakeClock, *doubts: Doubt) -> RetryMemory:
    return RetryMemory(KEEP_S, clock.monotonic_s, doubts)


def taken_all(given: Batch) -> Batch:
    given.taken = len(given.entries)
    return given


def test_only_a_client_that_has_gone_sends_a_batch_again() -> None:
    """Two clients of one host may log the same at the same time; both count."""
    own = memory(FakeClock())
    first, second, again = batch(), batch(), batch()
    assert own.former(first) is None
    assert own.former(second) is None
    first.caller.fate = Fate.GONE
    assert own.former(again) is first
    second.caller.fate = Fate.CONFIRMED
    first.caller = again.caller
    assert own.former(batch()) is None


def test_a_batch_of_the_checkpoint_continues_behind_what_is_in_it() -> None:
    """Once: the next equal batch is another one."""
    own = memory(FakeClock(), (b"a", 2), (b"b", 3))
    first, whole, other, later = batch(b"a"), batch(b"b"), batch(b"c"), batch(b"a")
    for each in (first, whole, other, later):
        assert own.former(each) is None
    assert [each.taken for each in (first, whole, other, later)] == [2, 3, 0, 0]


def test_two_equal_batches_of_the_checkpoint_are_two() -> None:
    """Each of them may come again."""
    own = memory(FakeClock(), (b"a", 3), (b"a", 3))
    found = [batch(), batch(), batch()]
    for each in found:
        own.former(each)
    assert [each.taken for each in found] == [3, 3, 0]


def test_a_checkpoint_keeps_what_may_come_again() -> None:
    """Not what the client has confirmed, nor what nobody has taken; but what an earlier checkpoint kept."""
    own = memory(FakeClock(), (b"old", 1))
    confirmed, waiting, gone, untaken = batch(b"1"), batch(b"2"), batch(b"3"), batch(b"4")
    for each in (confirmed, waiting, gone, untaken):
        own.former(each)
    for each in (confirmed, waiting, gone):
        taken_all(each)
    confirmed.caller.fate, gone.caller.fate = Fate.CONFIRMED, Fate.GONE
    assert set(own.doubts()) == {(b"old", 1), (b"2", 3), (b"3", 3)}
    again = batch(b"old")
    own.former(again)
    assert again.taken == 1
    assert (b"old", 1) in own.doubts()  # its answer may be missed too


def test_a_doubt_lasts_from_the_answer() -> None:
    """A call may wait for its checkpoint for longer than the memory keeps answered ones."""
    clock = FakeClock()
    intake = Intake(1000, lambda: None, clock.monotonic_s)
    own = memory(clock)
    first = taken_all(batch())
    first.arrived_s = first.answered_s = clock.monotonic_s()
    own.former(first)
    clock.advance(KEEP_S)
    intake.answer(first)
    clock.advance(KEEP_S - 1)
    assert own.doubts() == ((b"a", 3),)
    clock.advance(1)
    assert own.doubts() == ()


def test_the_memory_has_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    """Also if no checkpoint comes. What is forgotten first has had its answer the longest; the log has one line."""
    clock = FakeClock()
    own = RetryMemory(KEEP_S, clock.monotonic_s, [(b"old", 1)], most=16)
    waiting = [taken_all(batch(b"w%d" % number)) for number in range(4)]
    answered = [taken_all(batch(b"a%d" % number)) for number in range(100)]
    for each in waiting:
        own.former(each)
    for number, each in enumerate(answered):
        own.former(each)
        clock.advance(0.01)
        each.answered, each.answered_s, each.caller.fate = True, clock.monotonic_s(), Fate.GONE
        assert own.former(batch(b"a%d" % number)) is each
    found = own.doubts()
    assert len(found) <= 16
    assert found[-4:] == tuple((b"w%d" % number, 3) for number in range(4))
    assert found[-5] == (b"old", 1)
    assert [digest for digest, _ in found[:-5]] == [b"a%d" % number for number in range(105 - len(found), 100)]
    assert own.forgotten > 0
    assert caplog.text.count("the oldest are forgotten") == 1
    last = answered[-1]
    assert own.former(batch(b"a0")) is None
    assert own.former(batch(last.digest)) is last


def test_doubts_end() -> None:
    """A batch that comes after that is a new one, and checkpoints do not grow."""
    clock = FakeClock()
    own = memory(clock, (b"old", 3))
    first = taken_all(batch(b"a"))
    own.former(first)
    first.answered, first.caller.fate = True, Fate.GONE
    clock.advance(KEEP_S)
    assert own.doubts() == ()
    late = batch(b"old")
    assert own.former(late) is None
    assert late.taken == 0
    assert own.former(batch(b"a")) is None


def test_intake_bounds_what_is_held() -> None:
    """Batches and parts of calls count together, until their answer."""
    woken: list[int] = []
    intake = Intake(250, lambda: woken.append(1), FakeClock().monotonic_s)
    assert intake.has_room(10_000)
    intake.put(batch())
    intake.partial_bytes += 50
    assert intake.has_room(100)
    assert not intake.has_room(101)
    intake.put(batch(count=2))
    assert (intake.waiting_messages, intake.held_bytes, intake.is_over) == (5, 250, False)
    taken = intake.take()
    assert taken is not None
    assert not intake.has_room(1)
    intake.answer(taken)
    assert intake.has_room(100)
    assert (len(taken.entries), taken.answered, woken) == (0, True, [1])
    assert [each for each, _ in intake.answers()] == [taken]


def test_only_batches_that_nobody_has_taken_expire() -> None:
    """What was emitted cannot be taken back."""
    intake = Intake(1000, lambda: None, FakeClock().monotonic_s)
    batches = [batch(bytes([number])) for number in range(3)]
    for arrived_s, each in enumerate(batches):
        each.arrived_s = float(arrived_s)
        intake.put(each)
    assert intake.take() is batches[0]
    assert intake.expired(2.0) == [batches[1]]
    assert intake.take() is batches[2]
    assert intake.expired(9.0) == []
