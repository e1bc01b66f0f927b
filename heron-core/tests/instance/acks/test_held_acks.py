"""Acks that wait for a checkpoint, against a model of what each checkpoint contains."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heron.instance.acks.held_acks import HeldRootCallbacks
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.queues.data_queue import RootsSettled
from heron.ipc.frames.tracking import RootOutcome


class Bench:
    """Callbacks, and the outcomes that the author has seen."""

    def __init__(self) -> None:
        self.pending = PendingRoots(lambda: 0.0)
        self.metrics = TaskMetrics()
        self.held = HeldRootCallbacks(self.pending, self.metrics, lambda *_: None)
        self.acked: list[object] = []
        self.failed: list[object] = []
        self.held.on_ack, self.held.on_fail = self.acked.append, self.failed.append

    def settle(self, counters: list[int], outcome: RootOutcome = RootOutcome.COMPLETE) -> None:
        """The stream manager reports these roots."""
        self.held.settle(RootsSettled(((outcome, counters),)))


def test_acks_wait_for_a_checkpoint_that_contains_them() -> None:
    """What completes after the save belongs to a later checkpoint."""
    bench = Bench()
    base = bench.pending.open(["a", "b", "c"])
    bench.settle([base])
    bench.held.saved(1)
    bench.settle([base + 1])
    assert bench.acked == []
    bench.held.complete(1)
    assert bench.acked == ["a"]
    assert bench.metrics.acked == 1
    bench.held.saved(2)
    bench.held.saved(3)
    bench.held.complete(3)  # number 2 failed
    assert bench.acked == ["a", "b"]


def test_acks_of_several_ids_wait_too() -> None:
    """Also where the author hears of nothing else."""
    bench = Bench()
    calls: list[list[object]] = []
    bench.held.on_ack = bench.held.on_fail = None
    bench.held.on_ack_all = lambda ids: calls.append(list(ids))
    base = bench.pending.open(["a", "b"])
    bench.settle([base, base + 1])
    bench.held.saved(1)
    assert calls == []
    bench.held.complete(1)
    assert calls == [["a", "b"]]


def test_a_restore_fails_what_no_checkpoint_contains() -> None:
    """That is: complete roots that wait, in order, then roots in flight; late outcomes change nothing."""
    bench = Bench()
    base = bench.pending.open(list("abcd"))
    bench.settle([base])
    bench.held.saved(1)
    bench.settle([base + 1])
    bench.held.saved(2)
    bench.settle([base + 2])
    bench.held.complete(1)
    bench.held.restored()
    assert (bench.acked, bench.failed) == (["a"], ["b", "c", "d"])
    bench.settle([base + 3])
    bench.held.saved(3)
    bench.held.complete(3)
    assert bench.acked == ["a"]


def test_a_failed_root_does_not_wait() -> None:
    """Only completion depends on a checkpoint."""
    bench = Bench()
    base = bench.pending.open(["a"])
    bench.settle([base], RootOutcome.EXPIRED)
    assert bench.failed == ["a"]


def test_ids_that_nobody_hears_of_are_not_kept() -> None:
    """A spout without `ack` and `fail` pays no memory; its roots count as acked."""
    bench = Bench()
    bench.held.on_ack = bench.held.on_fail = None
    base = bench.pending.open(["a", "b"])
    bench.settle([base, base + 1])
    assert bench.metrics.acked == 2


@given(st.lists(st.sampled_from(["open", "settle", "save", "complete", "restore"]), max_size=60))
def test_each_root_has_one_outcome_and_an_ack_is_in_a_complete_checkpoint(steps: list[str]) -> None:
    """For any order of events; `held` is what the author would lose if acks did not wait."""
    bench = Bench()
    flying: list[tuple[int, int]] = []
    in_checkpoint: dict[int, int] = {}  # root: the first checkpoint that contains it
    done: set[int] = set()
    opened = number = complete = 0
    for step in steps:
        if step == "open":
            flying.append((bench.pending.open([opened]), opened))
            opened += 1
        elif step == "settle" and flying:
            counter, root = flying.pop(0)
            bench.settle([counter])
            done.add(root)
        elif step == "save":
            number += 1
            bench.held.saved(number)
            in_checkpoint.update(dict.fromkeys(done - in_checkpoint.keys(), number))
        elif step == "complete":
            complete = number
            bench.held.complete(number)
        elif step == "restore":
            bench.held.restored()
            flying.clear()
            done -= {root for root in done if in_checkpoint.get(root, number + 1) > complete}
    outcomes = [*bench.acked, *bench.failed]
    assert len(outcomes) == len(set(outcomes))
    assert all(in_checkpoint[int(str(root))] <= complete for root in bench.acked)
    bench.held.restored()
    assert sorted(map(int, map(str, [*bench.acked, *bench.failed]))) == list(range(opened))
