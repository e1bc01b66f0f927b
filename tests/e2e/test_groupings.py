"""Which task gets which tuple, over real processes in two containers."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

NUMBERS = 600


def test_every_grouping_sends_each_tuple_where_it_promises(sandbox: Sandbox) -> None:
    """One topology has them all, so that they also do not disturb each other; its values are of a class of its own."""
    run = sandbox.start("groupings.py")
    plan = sandbox.run("groupings.py", "--json", command="plan")
    run.finished()

    everything = list(range(NUMBERS))
    assert sorted(numbers_of(run, "shuffle")) == everything
    assert {len(rows) for rows in run.results("shuffle").values()} == {NUMBERS // 3}, "shuffle deals in turn"
    assert all(sorted(numbers(rows)) == everything for rows in run.results("all").values())
    lowest = run.results("lowest")
    assert sorted(numbers(lowest.pop(min(lowest)))) == everything
    assert not any(lowest.values())

    assert sorted(numbers_of(run, "fields")) == everything
    assert all(len(tasks) == 1 for tasks in tasks_by_key(run, "fields").values())
    assert sorted(numbers_of(run, "partial")) == everything
    for spout_tasks in (tasks_by_key(run, "partial", source) for source in (1, 2)):
        assert {len(tasks) for tasks in spout_tasks.values()} <= {1, 2}, "a key has two tasks at most"
    assert any(len(tasks) == 2 for tasks in tasks_by_key(run, "partial").values())
    assert min(len(rows) for rows in run.results("partial").values()) > NUMBERS / 4, "the load is even"

    for name, of in (("by_class", 5), ("by_object", 7)):
        first, second, third = (sorted(numbers(rows)) for _, rows in sorted(run.results(name).items()))
        assert first == second == [number for number in everything if number % of == 0]
        assert not third
    direct = [sorted(numbers(rows)) for _, rows in sorted(run.results("direct").items())]
    assert direct == [everything[index::3] for index in range(3)]

    place = {task["task"]: task["container"] for task in json.loads(plan.stdout)["physical"]["tasks"]}
    local = run.results("local")
    assert sorted(numbers_of(run, "local")) == everything
    assert {place[task] for task in local} == {1, 2}, "the plan has put the bolt into both containers"
    for task, rows in local.items():
        assert rows, f"task {task} got nothing"
        assert {place[int(str(row[2]))] for row in rows} == {place[task]}, "no tuple left its container"


def numbers(rows: list[list[object]]) -> list[int]:
    """The numbers of what a task received."""
    return [int(str(row[-1])) for row in rows]


def numbers_of(run: HeronRun, component: str) -> list[int]:
    """The numbers of what all tasks of a component received."""
    return [number for rows in run.results(component).values() for number in numbers(rows)]


def tasks_by_key(run: HeronRun, component: str, source: int | None = None) -> dict[object, set[int]]:
    """Which tasks each key came to, from all tasks or from one."""
    found: dict[object, set[int]] = defaultdict(set)
    for task, rows in run.results(component).items():
        for row in rows:
            if source in (None, row[2]):
                found[row[3]].add(task)
    return found
