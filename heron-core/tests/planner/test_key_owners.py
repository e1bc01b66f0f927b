"""The owners of key groups: equal shares, and an update moves no more groups than it must."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.planner.key_owners import KeyOwners, even_owners, moved_groups, owners_after


@given(groups=st.integers(1, 2000), data=st.data())
def test_each_task_of_a_new_topology_owns_one_range(groups: int, data: st.DataObject) -> None:
    """A run of groups is a short entry of the plan, and no task gets much more state than another."""
    parallelism = data.draw(st.integers(1, groups))
    tasks = [100 + index for index in range(parallelism)]
    owners = even_owners(groups, tasks)
    assert list(owners) == sorted(owners)
    assert {owners.count(task) for task in tasks} <= {groups // parallelism, -(-groups // parallelism)}
    assert len(KeyOwners.of(owners).runs) == parallelism


@given(groups=st.integers(1, 300), data=st.data())
def test_an_update_gives_equal_shares_and_moves_the_fewest_groups(groups: int, data: st.DataObject) -> None:
    """The bound: a task keeps at most its share, and only tasks with the most groups can have the larger share."""
    ids = st.lists(st.integers(1, 40), min_size=1, max_size=min(groups, 20), unique=True)
    before = even_owners(groups, data.draw(ids))
    for tasks in (data.draw(ids), data.draw(ids)):
        after = owners_after(before, tasks)
        shares, held = Counter(after), Counter(before)
        assert set(after) == set(tasks)
        assert max(shares.values()) - min(shares.values()) <= 1
        small, larger = divmod(groups, len(tasks))
        stay = sum(min(held[task], small) for task in tasks)
        stay += min(larger, sum(held[task] > small for task in tasks))
        assert len(moved_groups(before, after)) == groups - stay
        before = after


def test_the_same_tasks_move_nothing() -> None:
    """Whatever the shares are: an update of another component must not move the groups of this one."""
    owners = owners_after(even_owners(10, (1, 2, 3)), (3, 9, 1))
    assert owners_after(owners, (1, 3, 9)) == owners


def test_new_tasks_take_the_last_groups_of_the_others() -> None:
    """Deterministic, so that a dry run shows the moves of the update that follows it."""
    assert owners_after((1, 1, 1, 2, 2, 2), (1, 2, 7)) == (1, 1, 7, 2, 2, 7)
    assert owners_after((1, 1, 7, 2, 2, 7), (1, 2)) == (1, 1, 1, 2, 2, 2)


@pytest.mark.parametrize("table", [(), (4,), (1, 1, 2, 1)])
def test_runs_are_the_table(table: tuple[int, ...]) -> None:
    """The plan has runs, routing has a table."""
    assert KeyOwners.of(table).table() == table
