"""The destinations of each grouping, with real processes in two containers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

NUMBERS = 600
EVERYTHING = list(range(NUMBERS))
Row = tuple[int, str, int]  # source task, key, number


@pytest.mark.guarantee
def test_every_grouping_sends_each_tuple_to_the_right_task(sandbox: Sandbox) -> None:
    """One bolt uses all groupings, which must not disturb each other. The values have a class of the script.

    Guarantee: each grouping sends a tuple to the documented tasks.
    """
    run = sandbox.start("groupings.py")
    plan = sandbox.run("groupings.py", "--json", command="plan")
    run.finished()
    tasks = received(run.results("record"))
    first, second, third = sorted(tasks)

    def numbers(stream: str) -> list[list[int]]:
        return [sorted(number for _, _, number in tasks[task][stream]) for task in (first, second, third)]

    assert joined(numbers("shuffle")) == EVERYTHING
    assert {len(each) for each in numbers("shuffle")} == {NUMBERS // 3}, "dealt in turn"
    assert numbers("all") == [EVERYTHING] * 3
    assert numbers("lowest") == [EVERYTHING, [], []]
    assert numbers("direct") == [EVERYTHING[index::3] for index in range(3)]
    for stream, of in (("by_class", 5), ("by_object", 7)):
        multiples = [number for number in EVERYTHING if number % of == 0]
        assert numbers(stream) == [multiples, multiples, []]

    for stream in ("fields", "partial"):
        assert joined(numbers(stream)) == EVERYTHING
    owners = {stream: tasks_by_key(tasks, stream) for stream in ("fields", "partial")}
    assert {len(each) for each in owners["fields"].values()} == {1}, "equal keys reach one task"
    assert {len(each) for each in owners["partial"].values()} == {1, 2}, "equal keys reach one of two tasks"
    assert min(map(len, numbers("partial"))) > NUMBERS / 4, "the load is even"

    place = {task["task"]: task["container"] for task in json.loads(plan.stdout)["physical"]["tasks"]}
    assert joined(numbers("local")) == EVERYTHING
    assert {place[task] for task in tasks} == {1, 2}, "the plan has put the bolt into both containers"
    for task, streams in tasks.items():
        assert {place[source] for source, _, _ in streams["local"]} == {place[task]}, "no tuple left its container"


def received(results: dict[int, list[list[object]]]) -> dict[int, dict[str, list[Row]]]:
    """Return the received values, by task and stream."""
    found: dict[int, dict[str, list[Row]]] = {}
    for task, rows in results.items():
        streams = found[task] = defaultdict(list)
        for _, stream, source, key, number in rows:
            streams[str(stream)].append((int(str(source)), str(key), int(str(number))))
    return found


def tasks_by_key(tasks: dict[int, dict[str, list[Row]]], stream: str) -> dict[str, set[int]]:
    """Return the tasks that each key reached."""
    found: dict[str, set[int]] = defaultdict(set)
    for task, streams in tasks.items():
        for _, key, _ in streams[stream]:
            found[key].add(task)
    return found


def joined(parts: Iterable[list[int]]) -> list[int]:
    """Return all numbers, sorted."""
    return sorted(number for part in parts for number in part)
