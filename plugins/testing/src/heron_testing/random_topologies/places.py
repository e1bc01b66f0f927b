"""Which tasks of a bolt received its tuples: compared with what its groupings promise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from heron_testing.random_topologies.lineage import is_custom
from heron_testing.random_topologies.oracle import Expected
from heron_testing.random_topologies.program import BoltProgram, Input, Program
from heron_testing.random_topologies.task_memory import ReceivedRow, TaskMemory

__all__ = ["wrong_places"]

_Rows = list[tuple[int, ReceivedRow]]
"""Rows with the component index of the task that received them."""


_EQUAL_KEYS = {"bool True": "int 1", "float 1.0": "int 1"}
"""Descriptions of equal keys: equal keys reach the same task, whatever their type."""


def wrong_places(program: Program, memories: Sequence[TaskMemory], expected: Expected) -> Iterator[str]:
    """Tuples at tasks that their grouping does not choose: the first of each input, as a line.

    Bolts whose tasks change while the topology runs are left out.
    """
    for bolt in program.bolts:
        if any(bolt.name in (*each.tasks, each.rebalance) or each.containers for each in program.updates):
            continue
        tasks = [each for each in memories if each.component == bolt.name]
        by_input = {
            each: [(task.index, row) for task in tasks for row in task.rows if row[:2] == (each.component, each.stream)]
            for each in bolt.inputs
        }
        for each, rows in by_input.items():
            for line in islice(_wrong(program, bolt, each, rows, expected), 1):
                yield f"{bolt.name}, {each.grouping} of {each.component}: {line}"
        keyed = [row for each, rows in by_input.items() if each.grouping == "FIELDS" for row in rows]
        yield from (f"{bolt.name}, FIELDS: {line}" for line in islice(_by_key(keyed, 1), 1))


def _wrong(program: Program, bolt: BoltProgram, each: Input, rows: _Rows, expected: Expected) -> Iterator[str]:
    if each.grouping in ("ALL", "LOWEST", "GLOBAL") or is_custom(each.grouping):
        return _at_chosen(bolt, rows, expected)
    if each.grouping == "PARTIAL_KEY":
        return _by_key(rows, 2)
    return _in_turn(program, bolt, each, rows) if each.grouping in ("SHUFFLE", "NONE") else iter(())


def _at_chosen(bolt: BoltProgram, rows: _Rows, expected: Expected) -> Iterator[str]:
    by_tuple: defaultdict[ReceivedRow, Counter[int]] = defaultdict(Counter)
    for index, row in rows:
        by_tuple[row][index] += 1
    for row, indices in by_tuple.items():
        chosen = expected.places.get((bolt.name, (*row[:2], *row[3:])), ())
        if set(indices) != set(chosen) or len(set(indices.values())) > 1:
            yield f"tuple {row[3]} came to tasks {sorted(indices.elements())} instead of {list(chosen)}"


def _by_key(rows: _Rows, most: int) -> Iterator[str]:
    by_key: defaultdict[str, set[int]] = defaultdict(set)
    for index, row in rows:
        by_key[_EQUAL_KEYS.get(row[5], row[5])].add(index)
    for key, indices in by_key.items():
        if len(indices) > most:
            yield f"key {key} came to tasks {sorted(indices)}"


def _in_turn(program: Program, bolt: BoltProgram, each: Input, rows: _Rows) -> Iterator[str]:
    """Rows of a spout are dealt in turn, so no task gets two more of an emitting task than another one."""
    spout = next((spout for spout in program.spouts if spout.name == each.component), None)
    if spout is None or spout.columns or any(emit.bad for call in spout.calls for emit in call.emits):
        return
    for source in sorted({row[2] for _, row in rows}):
        counts = Counter(dict.fromkeys(range(bolt.tasks), 0))
        counts.update(index for index, row in rows if row[2] == source)
        if max(counts.values()) - min(counts.values()) > 1:
            yield f"task {source} sent {dict(sorted(counts.items()))} tuples to the tasks, by index"
