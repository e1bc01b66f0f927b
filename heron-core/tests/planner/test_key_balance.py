"""Key groups move from busy tasks to idle ones: the fewest, and never all of a task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import RemoteProtocolError
from heron.planner.key_balance import balanced_owners, decode_owners, encode_owners, expected_rates
from heron.planner.key_owners import KeyOwners, even_owners, moved_groups

OWNERS = st.integers(1, 6).flatmap(
    lambda tasks: st.lists(st.integers(1, tasks), max_size=60).map(lambda rest: [*range(1, tasks + 1), *rest])
)


def test_the_busy_task_gives_what_makes_the_tasks_even() -> None:
    """A task with three times the tuples of the other gives a third of its groups."""
    before = even_owners(1024, [1, 2])
    after = balanced_owners(before, {1: 3000.0, 2: 1000.0})
    rates = expected_rates(before, after, {1: 3000.0, 2: 1000.0})
    assert rates == {1: pytest.approx(2000.0, rel=0.06), 2: pytest.approx(2000.0, rel=0.06)}
    assert 140 < len(moved_groups(before, after)) <= 171
    assert all(before[group] == 1 for group in moved_groups(before, after))


def test_small_differences_move_nothing() -> None:
    """They are noise, and state would move for nothing."""
    before = even_owners(1024, [1, 2, 3])
    assert balanced_owners(before, {1: 1040.0, 2: 1000.0, 3: 960.0}) == before


def test_without_tuples_nothing_moves() -> None:
    """A topology that has just started has no figures."""
    before = even_owners(16, [1, 2])
    assert balanced_owners(before, {}) == before


@pytest.mark.parametrize("tasks", [2, 3, 8])
def test_tasks_that_are_busy_with_many_keys_become_even(tasks: int) -> None:
    """The keys of the first half come four times; two calls find what is left of it, and a third one finds nothing."""
    weights = [4.0] * 512 + [1.0] * 512
    owners: tuple[int, ...] = even_owners(1024, range(1, tasks + 1))
    moves, rates = [], dict[int, float]()
    for _ in range(3):
        rates = dict.fromkeys(range(1, tasks + 1), 0.0)
        for weight, owner in zip(weights, owners, strict=True):
            rates[owner] += weight
        before, owners = owners, balanced_owners(owners, rates)
        moves.append(len(moved_groups(before, owners)))
    assert moves[0] > 100
    assert moves[2] == 0
    assert max(rates.values()) <= 1.06 * sum(weights) / tasks


def test_a_task_that_cannot_give_does_not_stop_the_others() -> None:
    """Its only group is too large for any task."""
    before = [1] + [2] * 500 + [3] * 523
    after = balanced_owners(before, {1: 5000.0, 2: 3000.0})
    expected = expected_rates(before, after, {1: 5000.0, 2: 3000.0})
    assert expected == {1: 5000.0, 2: pytest.approx(1500.0, rel=0.06), 3: pytest.approx(1500.0, rel=0.06)}


@given(OWNERS, st.lists(st.floats(0, 1e9), min_size=6, max_size=6))
def test_no_task_becomes_busier_than_the_busiest_was(owners: list[int], figures: list[float]) -> None:
    """Every task keeps a group, and a group moves once at most, from a task above the mean."""
    rates = dict(enumerate(figures, start=1))
    after = balanced_owners(owners, rates)
    assert set(after) == set(owners)
    present = {task: rates[task] for task in set(owners)}
    expected = expected_rates(owners, after, rates)
    assert max(expected.values()) <= max(present.values()) * (1 + 1e-9)
    assert all(present[owners[group]] > min(present.values()) for group in moved_groups(owners, after))
    assert sum(expected.values()) == pytest.approx(sum(present.values()), rel=1e-6, abs=1e-6)


def test_owners_in_a_request_decode_or_are_refused() -> None:
    """A request of another version must not reach the plan."""
    owners = {"count": KeyOwners.of((1, 1, 2))}
    assert decode_owners(encode_owners(owners)) == owners
    with pytest.raises(RemoteProtocolError, match="do not decode"):
        decode_owners(b'{"count": 1}')
