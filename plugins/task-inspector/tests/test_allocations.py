"""Which lines hold what they allocated, and which of them grow."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

import heron.clock
from heron_task_inspector import allocations
from heron_task_inspector.allocations import AllocationTrace, allocating_lines, held_by_line

USER, OTHER, LIBRARY = "/home/me/words.py", "/home/me/other.py", json.__file__
ENGINE = heron.clock.__file__


@pytest.fixture
def trace() -> Iterator[AllocationTrace]:
    """A trace of this process."""
    made = AllocationTrace()
    yield made
    made.end()


def test_the_innermost_line_of_user_code_stands_for_what_it_calls() -> None:
    """The author looks for a line of the author's code, not for one of the library."""
    held = held_by_line(
        [
            (((ENGINE, 1), (OTHER, 2), (USER, 3), (LIBRARY, 4)), 100, 1),
            (((ENGINE, 1), (USER, 3), (LIBRARY, 9)), 10, 2),
            (((ENGINE, 1), (LIBRARY, 4)), 1, 1),
            (((ENGINE, 7),), 5, 1),
            ((), 7, 1),
        ],
        {},
    )
    assert held == {(USER, 3): (110, 3), (LIBRARY, 4): (1, 1), (ENGINE, 7): (5, 1)}


def test_what_the_observer_allocates_is_left_out() -> None:
    """It would be the first line of an idle task."""
    assert held_by_line([(((USER, 1), (allocations.__file__, 3), (tracemalloc.__file__, 4)), 100, 1)], {}) == {}


def test_a_plugin_is_the_engine_wherever_it_is_installed() -> None:
    """Its files may be in a checkout, as the author's are."""
    file = "/work/plugins/streamlet/src/heron_streamlet/stage.py"
    (line,) = allocating_lines({}, {(file, 3): (10, 1)}, {file: "heron_streamlet.stage"})
    assert line.origin == "engine"


def test_lines_that_grow_come_first_and_those_of_user_code_are_never_crowded_out() -> None:
    """A table that is full holds much, and is not the leak."""
    engine = {(ENGINE, number): (1_000_000, 1) for number in range(100)}
    half = {(USER, 1): (5_000, 5), (USER, 2): (100, 1)}
    end = {**engine, (USER, 1): (5_000, 5), (USER, 2): (300, 3)}
    lines = allocating_lines(half, end, {})
    assert [(each.line, each.held_bytes, each.held_blocks, each.grown_bytes) for each in lines[:2]] == [
        (2, 300, 3, 200),
        (1, 5_000, 5, 0),
    ]
    assert len(lines) == 32


def test_a_line_that_holds_memory_is_found_with_its_source(trace: AllocationTrace) -> None:
    """What was allocated before the trace, and what is gone again, does not count."""
    kept = [str(number) * 20 for number in range(1_000)]
    _gone = [str(number) * 20 for number in range(1_000)]
    del _gone
    lines = [each for each in allocating_lines({}, trace.held({}), {}) if each.file == __file__]
    assert lines[0].source == "kept = [str(number) * 20 for number in range(1_000)]"
    assert lines[0].origin == "user"
    assert lines[0].held_bytes > sum(len(each) for each in kept)
    assert sum(each.held_bytes for each in lines if "_gone" in each.source) < 5_000  # not 90,000
    assert 0 < trace.filled() < 1


def test_a_component_that_traces_its_own_allocations_keeps_its_trace() -> None:
    """It would lose what it has traced, and the observer cannot bound that trace."""
    tracemalloc.start()
    try:
        trace = AllocationTrace()
        assert trace.is_foreign
        assert trace.held({}) == {}
        trace.end()
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_a_trace_that_the_component_has_ended_has_no_lines(trace: AllocationTrace) -> None:
    """A snapshot would raise then."""
    tracemalloc.stop()
    assert trace.held({}) == {}
    trace.end()
