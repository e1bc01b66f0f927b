"""Which failed roots are emitted again, when, and which are given up; a model of a spout with random outcomes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.instance.replay.kept_roots import KeptRoot, Replay
from heron.instance.replay.replay_policy import LONGEST_BACKOFF_S, ReplayPolicy
from heron.instance.replay.replayer import GivenUp, Replayer
from heron.ipc.frames.tracking import RootOutcome
from heron_testing.fake_clock import FakeClock

POLICY = ReplayPolicy(attempts=2, first_backoff_s=0.1, most_bytes=1000)


class Desk:
    """A replayer with a clock of its own, and what it gave up."""

    def __init__(self, policy: ReplayPolicy = POLICY) -> None:
        self.clock = FakeClock()
        self.given_up: list[GivenUp] = []
        self.replayer = Replayer(policy, self.clock.monotonic_s, self.given_up.extend)

    def flush(self, *ids: object, size_bytes: int = 10) -> list[KeptRoot]:
        """Keeps the roots of a flush, each with its id for a row."""
        rows = [each.tup_id if isinstance(each, Replay) else each for each in ids]
        share = self.replayer.kept(len(ids), size_bytes * len(ids))
        return [KeptRoot(tup_id, row, "default", (), share) for tup_id, row in zip(ids, rows, strict=True)]

    def due(self) -> list[KeptRoot]:
        """Takes everything that is due."""
        return list(self.replayer.take_due(float("inf")))


def test_a_root_is_emitted_again_with_twice_the_wait_each_time_and_then_given_up() -> None:
    """The author hears of it once, at the end; the last cause is in the letter."""
    desk = Desk()
    roots = desk.flush("a")
    for failures, wait_s in ((1, 0.1), (2, 0.2)):
        assert desk.replayer.failed(roots, RootOutcome.FAILED, 0.0, [(b"an earlier one", b"")]) == []
        desk.clock.advance(wait_s - 0.001)
        assert desk.due() == []
        assert desk.replayer.waiting == 1
        desk.clock.advance(0.002)
        (root,) = desk.due()
        assert isinstance(root.tup_id, Replay)
        assert (root.row, root.tup_id.failures) == ("a", failures)
        roots = desk.flush(root.tup_id)
    assert desk.replayer.failed(roots, RootOutcome.EXPIRED, 0.0, [(b"the last", b"")]) == ["a"]
    (given_up,) = desk.given_up
    assert (given_up.replay.failures, given_up.outcome, given_up.cause[0]) == (3, RootOutcome.EXPIRED, b"the last")
    assert (desk.replayer.kept_bytes, desk.replayer.waiting, desk.replayer.replayed) == (0, 0, 2)


def test_roots_that_fail_within_an_eighth_of_their_wait_are_due_together() -> None:
    """A flush for each few roots costs every process more than the roots; none waits longer than it should."""
    desk = Desk()
    roots = desk.flush(*range(5))
    for number, later_s in enumerate((0.0, 0.006, 0.006, 0.006)):
        desk.clock.advance(later_s)
        desk.replayer.failed(roots[number : number + 1], RootOutcome.FAILED, 0.0)
    desk.clock.advance(0.082 - 0.001)
    assert desk.due() == []
    desk.clock.advance(0.002)
    assert [root.row for root in desk.due()] == [0, 1, 2]
    desk.replayer.failed(roots[4:], RootOutcome.FAILED, 0.0)
    desk.clock.advance(0.017)
    assert [root.row for root in desk.due()] == [3]
    assert desk.replayer.waiting == 1
    desk.clock.advance(0.09)
    assert [root.row for root in desk.due()] == [4]


def test_roots_that_are_given_up_together_are_told_together() -> None:
    """Their letters are written at once."""
    calls = list[int]()
    replayer = Replayer(
        ReplayPolicy(1, 0.1, 1000), FakeClock().monotonic_s, lambda given_up: calls.append(len(given_up))
    )
    ids = [replayer.letter_id() if each == 1 else Replay(each, 0.0) for each in range(3)]
    roots = [KeptRoot(tup_id, None, "default", (), 1) for tup_id in ids]
    assert replayer.failed(roots, RootOutcome.FAILED, 0.0) == []
    assert replayer.failed(roots, RootOutcome.FAILED, 0.0) == [0, 2]
    assert calls == [2]


def test_a_root_that_is_lost_with_a_process_is_emitted_again_without_end() -> None:
    """It did nothing wrong, and the process may die many times."""
    desk = Desk()
    roots = desk.flush("a")
    for _ in range(20):
        assert desk.replayer.failed(roots, RootOutcome.LOST, 0.0) == []
        desk.clock.advance(0.2)
        (root,) = desk.due()
        roots = desk.flush(root.tup_id)
    assert desk.replayer.acked(roots) == ["a"]
    assert desk.given_up == []


def test_the_wait_has_an_end() -> None:
    """Also after more failures than a float has powers of two."""
    policy = ReplayPolicy(10_000, 0.1, 1)
    assert [policy.wait_s(each) for each in (1, 2, 3)] == [0.1, 0.2, 0.4]
    assert policy.wait_s(5_000) == LONGEST_BACKOFF_S


def test_the_budget_counts_what_is_in_flight_and_what_waits() -> None:
    """A root that is emitted again is counted by its next flush."""
    desk = Desk()
    roots = desk.flush(*range(99))
    assert not desk.replayer.is_full()
    last = desk.flush(99, size_bytes=10)
    assert desk.replayer.is_full()
    desk.replayer.failed(roots[:50], RootOutcome.FAILED, 0.0)
    assert desk.replayer.is_full()
    desk.replayer.acked([*roots[50:], *last])
    assert desk.replayer.kept_bytes == 500
    desk.clock.advance(1.0)
    assert len(list(desk.replayer.take_due(20))) == 20
    assert (desk.replayer.kept_bytes, desk.replayer.waiting) == (300, 30)
    desk.replayer.forget()
    assert (desk.replayer.kept_bytes, desk.replayer.waiting) == (0, 0)


@pytest.mark.parametrize("attempts", [1, 3])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_root_is_acked_or_given_up_once(attempts: int, seed: int) -> None:
    """Random outcomes, flushes and waits; the model knows only ids and counts of failures."""
    chance = random.Random(seed)
    desk = Desk(ReplayPolicy(attempts, 0.1, 10**9))
    failures = dict.fromkeys(range(chance.choice([1, 5, 40])), 0)
    new, in_flight, ended = list(failures), list[KeptRoot](), list[object]()
    while len(ended) < len(failures):
        what = chance.choice(["emit", "settle", "wait"])
        if what == "emit" and (ids := [*new[:3], *[each.tup_id for each in desk.replayer.take_due(2)]]):
            del new[:3]
            in_flight += desk.flush(*ids, size_bytes=chance.choice([0, 7]))
        elif what == "settle" and in_flight:
            roots = [in_flight.pop(chance.randrange(len(in_flight)))]
            outcome = chance.choice([*RootOutcome])
            if outcome is RootOutcome.COMPLETE:
                ended += desk.replayer.acked(roots)
                continue
            of_root = roots[0].row
            assert isinstance(of_root, int)
            failures[of_root] += outcome is not RootOutcome.LOST
            given_up = desk.replayer.failed(roots, outcome, 0.0)
            assert given_up == ([of_root] if failures[of_root] > attempts else [])
            ended += given_up
        elif what == "wait":
            desk.clock.advance(chance.choice([0.05, 1.0]))
    assert sorted(map(str, ended)) == sorted(map(str, failures))
    assert (desk.replayer.kept_bytes, desk.replayer.waiting) == (0, 0)
