"""Compares what the tasks of a run remember with what the program means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from heron_testing.random_topologies.oracle import Expected, calls_of, expected_of
from heron_testing.random_topologies.places import wrong_places
from heron_testing.random_topologies.program import Program
from heron_testing.random_topologies.spouts import RaisedByProgram
from heron_testing.random_topologies.task_memory import TaskMemory

__all__ = ["differences", "unexpected_errors"]

_SHOWN = 5  # rows of a difference


def differences(program: Program, memories: Sequence[TaskMemory]) -> list[str]:
    """What a run did otherwise than its program means, one line each; empty if nothing."""
    if program.mode == "EFFECTIVELY_ONCE":
        # A restore undoes what a task did that an update has moved: its successor has the state of the checkpoint.
        latest = {(each.component, each.index): each for each in sorted(memories, key=lambda each: each.task_id)}
        memories = list(latest.values())
    calls = {(each.component, each.index): each.calls for each in memories}
    attempts = {root: count for each in memories for root, count in each.attempts.items()}
    expected = expected_of(program, calls, attempts)
    found = [*_of_spouts(program, memories, expected), *_of_rows(program, memories, expected)]
    return [*found, *wrong_places(program, memories, expected)]


def unexpected_errors(program: Program, errors: Sequence[str]) -> list[str]:
    """The errors of a run that the program does not ask for."""
    asked = [RaisedByProgram.__name__]
    if any(emit.bad for spout in program.spouts for call in spout.calls for emit in call.emits):
        asked += ["emit on stream", "decoding field"]
    return [f"error: {line}" for line in errors if not any(each in line for each in asked)]


def _of_spouts(program: Program, memories: Sequence[TaskMemory], expected: Expected) -> Iterator[str]:
    known = dict(calls_of(program))
    for each in memories:
        place = f"{each.component}[{each.index}]"
        if each.surplus:
            yield f"{place}: next_tuple was called {each.surplus} times after end() had returned"
        if not program.updates and each.calls != known.get((each.component, each.index), 0):
            yield f"{place}: made {each.calls} calls instead of {known[each.component, each.index]}"
    for spout in program.spouts:
        tasks = [each for each in memories if each.component == spout.name]
        attempts = {root: count for each in tasks for root, count in each.attempts.items()}
        prefix = f"{spout.name}."
        needed = {root: count for root, count in expected.attempts.items() if root.startswith(prefix)}
        for root in sorted(attempts.keys() | needed.keys()):
            made, least = attempts.get(root, 0), needed.get(root, 0)
            if made < least or (made > least and not expected.may_repeat):
                yield f"{spout.name}: root {root} was emitted {made} times instead of {least}"
        if spout.ids:
            acked = Counter(root for each in tasks for root in each.acked)
            failed = Counter(root for each in tasks for root in each.failed)
            yield from _of_outcomes(program, spout.name, spout.replay, attempts, acked, failed)


def _of_outcomes(
    program: Program,
    name: str,
    replay: str,
    attempts: dict[str, int],
    acked: Counter[str],
    failed: Counter[str],
) -> Iterator[str]:
    """Each attempt of a root has one outcome, and only the last may be an ack."""
    if program.mode == "EFFECTIVELY_ONCE" and program.updates:
        return  # a restore undoes emits whose acks were heard
    for root in sorted(attempts.keys() | acked.keys() | failed.keys()):
        made, good, bad = attempts.get(root, 0), acked[root], failed[root]
        given_up = program.tracks_acks and replay == "never" and bad == 1
        if good + bad != made or (good != 1 and not given_up):
            yield f"{name}: root {root} was emitted {made} times, acked {good} times and failed {bad} times"


def _of_rows(program: Program, memories: Sequence[TaskMemory], expected: Expected) -> Iterator[str]:
    for bolt in program.bolts:
        rows = [row for each in memories if each.component == bolt.name for row in each.rows]
        found = Counter((*row[:2], *row[3:]) for row in rows)
        wanted = expected.rows[bolt.name]
        for what, counter in (("missing", wanted - found), ("too much", found - wanted)):
            if counter:
                shown = "; ".join(f"{count} x {row}" for row, count in islice(sorted(counter.items()), _SHOWN))
                yield f"{bolt.name}: {counter.total()} of {wanted.total()} tuples {what}: {shown}"
