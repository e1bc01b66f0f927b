"""The ledger against a model with one dict entry per root."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.ipc.frames.tracking_arrays import edge_keys, edge_keys_of_range
from heron.stmgr.ledger import FEW, SEGMENT_ROOTS, FewRoots, Ledger

U64 = np.uint64


class Model:
    """The reference for the behaviour of the ledger."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.expiries: list[tuple[float, int, int]] = []
        self.missed = 0

    def insert(self, base: int, xors: list[int], deadline_s: float) -> list[int]:
        complete = []
        for offset, xor in enumerate(xors):
            if xor:
                self.live[base + offset] = xor
            else:
                complete.append(base + offset)
        self.expiries.append((deadline_s, base, len(xors)))
        return complete

    def update(self, roots: list[int], xors: list[int]) -> list[int]:
        touched = set()
        self.missed += sum(root not in self.live for root in roots)
        for root, xor in zip(roots, xors, strict=True):
            if root in self.live:
                self.live[root] ^= xor
                touched.add(root)
        return self.take_out([root for root in touched if self.live[root] == 0])

    def fail(self, roots: list[int]) -> list[int]:
        self.missed += sum(root not in self.live for root in roots)
        return self.take_out(roots)

    def take_out(self, roots: list[int]) -> list[int]:
        gone = sorted({root for root in roots if root in self.live})
        for root in gone:
            del self.live[root]
        return gone

    def expire(self, now_s: float) -> list[int]:
        gone = []
        while self.expiries and self.expiries[0][0] <= now_s:
            _, base, count = self.expiries.pop(0)
            gone += self.take_out(list(range(base, base + count)))
        return gone


steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, 40), st.integers(0, 3)),
        st.tuples(st.just("ack"), st.lists(st.integers(0, 10_000), max_size=30), st.booleans()),
        st.tuples(st.just("range"), st.integers(0, 10_000), st.integers(1, 50)),
        st.tuples(st.just("fail"), st.lists(st.integers(0, 10_000), max_size=10), st.none()),
        st.tuples(st.just("expire"), st.integers(0, 30), st.none()),
        st.tuples(st.just("fail_all"), st.none(), st.none()),
    ),
    max_size=60,
)


@given(steps=steps, start=st.sampled_from([0, 5, SEGMENT_ROOTS - 20, 2**40 - 10]), young=st.sampled_from([0, 16]))
@settings(max_examples=300, deadline=None)
def test_behaves_as_the_model(steps: list[tuple[str, object, object]], start: int, young: int) -> None:
    """Fan-outs, repeated and stale acks, fails, losses and expiry, in any order, across segments of both shapes."""
    ledger, model = Ledger(start, young_segments=young), Model()
    edges: list[tuple[int, int]] = []  # (root, key) still to be acked
    next_root, now_s = start, 0.0
    for name, first, second in steps:
        if name == "insert":
            rows, fan_out = int(first), int(second)  # type: ignore[call-overload]
            keys = [edge_keys_of_range(next_root * 7 + 1, rows, task) for task in range(fan_out)]
            xors = np.bitwise_xor.reduce(keys, axis=0) if keys else np.zeros(rows, dtype=U64)
            edges += [(next_root + row, int(key[row])) for key in keys for row in range(rows)]
            got = ledger.insert(next_root, xors, now_s + 10)
            assert got.tolist() == model.insert(next_root, xors.tolist(), now_s + 10)
            next_root += rows
        elif name == "ack" and edges:
            chosen = [edges[pick % len(edges)] for pick in first]  # type: ignore[attr-defined]
            edges = [edge for edge in edges if second or edge not in chosen]
            roots = np.array([root for root, _ in chosen], dtype=np.int64)
            xors = np.array([key for _, key in chosen], dtype=U64)
            assert sorted(ledger.update(roots, xors).tolist()) == model.update(roots.tolist(), xors.tolist())
        elif name == "range" and next_root > start:
            base = start + int(first) % (next_root - start)  # type: ignore[call-overload]
            xors = edge_keys_of_range(3, int(second), 9)  # type: ignore[call-overload]
            assert sorted(ledger.update_range(base, xors).tolist()) == model.update(
                list(range(base, base + len(xors))), xors.tolist()
            )
        elif name == "fail":
            roots = np.array([start + root for root in first], dtype=np.int64)  # type: ignore[attr-defined]
            assert sorted(ledger.fail(roots.tolist())) == model.fail(roots.tolist())
        elif name == "expire":
            now_s += int(first)  # type: ignore[call-overload]
            assert sorted(ledger.expire(now_s).tolist()) == sorted(model.expire(now_s))
        elif name == "fail_all":
            assert ledger.fail_all().tolist() == sorted(model.live)
            model.live.clear()
            model.expiries.clear()
        assert ledger.in_flight == len(model.live)
        assert ledger.take_missed() == model.missed
        model.missed = 0
    assert len(ledger._segments) <= (next_root - start) // SEGMENT_ROOTS + 2


def test_a_range_that_is_acked_as_a_whole_is_complete() -> None:
    """The usual case: a range that is inserted and acked as one leaves no segment."""
    ledger = Ledger(100)
    for batch in range(50):
        base = ledger.next_root
        keys = edge_keys_of_range(batch, 1000, 3)
        ledger.insert(base, keys.copy(), 30.0)
        assert ledger.update_range(base, keys).tolist() == list(range(base, base + 1000))
    assert ledger.in_flight == 0
    assert len(ledger._segments) <= 1


def test_keys_of_one_row_differ_by_task_and_do_not_cancel() -> None:
    """Two copies with the same key would cancel each other and complete the tree too early."""
    rows = np.arange(10_000, dtype=U64)
    copies = [edge_keys(12345, rows, task) for task in range(1, 9)]
    assert len(np.unique(np.concatenate(copies))) == 80_000
    assert np.count_nonzero(np.bitwise_xor.reduce(copies, axis=0) == 0) == 0


def test_roots_without_a_deadline_need_no_entry_of_expiry() -> None:
    """Without timeouts no entry is kept, and no root expires."""
    ledger = Ledger(0)
    ledger.insert(0, edge_keys_of_range(1, 10, 1), math.inf)
    assert not ledger._buckets
    assert len(ledger.expire(1e12)) == 0
    assert ledger.in_flight == 10


def test_complete_roots_are_freed_long_before_their_deadline() -> None:
    """With a timeout of an hour and 1,000 flushes a second, millions of entries would wait otherwise."""
    ledger = Ledger(0)
    for flush in range(5000):
        now_s = flush / 1000
        keys = edge_keys_of_range(flush, 50, 1)
        ledger.insert(ledger.next_root, keys, now_s + 3600.0)
        ledger.update_range(ledger.next_root - 50, keys)
        if flush % 100 == 0:
            ledger.expire(now_s)
    assert len(ledger._buckets) <= 20


def test_flushes_within_a_tenth_of_a_second_expire_together_and_none_too_early() -> None:
    """One entry covers all flushes of a tenth of a second, and each flush has its full timeout."""
    ledger = Ledger(0)
    for flush in range(1000):
        ledger.insert(flush, edge_keys_of_range(flush, 1, 1), 30.0 + flush / 1000)
    assert len(ledger._buckets) <= 11
    expired: list[int] = []
    for tick in range(29_950, 31_110, 10):
        expired += ledger.expire(tick / 1000).tolist()
        due = tick - 30_000  # the last root whose deadline has passed
        assert due - 105 <= len(expired) - 1 <= max(due, -1)
    assert expired == list(range(1000))


def test_a_root_that_is_never_acked_does_not_keep_its_segment() -> None:
    """One root of each segment is never acked. Each may cost its own size, but not a segment."""
    stragglers = 1000
    keys = edge_keys_of_range(1, SEGMENT_ROOTS, 1)
    tracemalloc.start()
    try:
        ledger = Ledger(0)
        for number in range(stragglers):
            ledger.insert(number * SEGMENT_ROOTS, keys, math.inf)
            ledger.update_range(number * SEGMENT_ROOTS + 1, keys[1:])
        throttled_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert ledger.in_flight == stragglers
    assert (throttled_bytes - 20 * 10 * SEGMENT_ROOTS) / stragglers < 600  # young segments are arrays
    late = np.arange(stragglers, dtype=np.int64) * SEGMENT_ROOTS
    assert ledger.update(late, np.full(stragglers, keys[0])).tolist() == late.tolist()
    assert len(ledger._segments) <= 1


@pytest.mark.parametrize("left", [FEW, FEW + 1])
def test_an_old_segment_with_few_live_roots_becomes_a_dict(left: int) -> None:
    """It may become old with few roots, or lose roots when it is old."""
    keys = edge_keys_of_range(1, SEGMENT_ROOTS, 1)
    ledger = Ledger(0)
    for number in range(20):
        ledger.insert(number * SEGMENT_ROOTS, keys, math.inf)
        ledger.update_range(number * SEGMENT_ROOTS, keys[:-left])
    old = ledger._segments[0]
    assert isinstance(old, FewRoots) == (left == FEW)
    ledger.fail([SEGMENT_ROOTS - 1])
    assert isinstance(ledger._segments[0], FewRoots)
    assert ledger._segments[0].live_count == left - 1


@pytest.mark.timeout(20)
def test_roots_far_from_all_before_cost_as_much_as_others() -> None:
    """A garbled frame may name any root, and 2**50 segments lie between."""
    ledger = Ledger(1)
    assert not len(ledger.insert(1, np.ones(3, U64), 10.0))
    assert not len(ledger.insert(2**62, np.ones(2, U64), 10.0))
    assert ledger.update(np.array([2, 2**62]), np.ones(2, U64)).tolist() == [2, 2**62]
    assert (ledger.in_flight, ledger.expire(10.0).tolist()) == (3, [1, 3, 2**62 + 1])
