"""The memory of a task and a sample of its tuples as text, and the options of the two commands."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from heron.spi.task_memory import (
    AllocatingLine,
    CodeLine,
    HeldMemory,
    LargeBuffer,
    MemoryLook,
    TaskMemory,
    TypeMemory,
)
from heron.spi.task_tuples import SampledTuple, TaskTuples
from heron_cli.commands.inspect import inspect as inspect_command
from heron_cli.commands.memory import memory as memory_command
from heron_cli.view.tasks.memory_text import memory_lines
from heron_cli.view.tasks.tuples_text import tuples_lines

MIB = 1 << 20
FIRST = MemoryLook(0.0, 0.1, 100 * MIB, 20 * MIB, 3 * MIB, 40 * MIB, 10, 1.0)
SECOND = MemoryLook(10.0, 0.1, 130 * MIB, 20 * MIB, None, 60 * MIB, 12, 0.25)
LINES = (
    AllocatingLine("/me/words.py", 12, "user", "self.seen.append(tup)", 5 * MIB, 5_000, 3 * MIB),
    AllocatingLine("/lib/json.py", 3, "library", "", 10, 1, -20),
)
USED = CodeLine("/me/words.py", 12, "self.seen.append(tup)")
HELD = (
    HeldMemory("self.seen", "list", 15_000, 9 * MIB, 5_000, 3 * MIB, at_least=True, used_at=(USED,)),
    HeldMemory("words.CACHE", "words.Cache", None, 100, 0, 0),
)
TYPES = (TypeMemory("str", 100, 3_000, 0, 0), TypeMemory("words.Event", 15_000, 2_000, 5_000, 700))
BUFFERS = (LargeBuffer("numpy.ndarray", 8 * MIB, "self.image"),)


def memory_of(first: MemoryLook = FIRST, second: MemoryLook = SECOND, traced_s: float = 10.0) -> TaskMemory:
    lines = LINES if traced_s else ()
    notes = ("tracing ended",)
    return TaskMemory(
        "words", "count", 3, 1, 0, 77, "here", first, second, traced_s, MIB, TYPES, lines, HELD, BUFFERS, notes
    )


def test_the_line_that_grows_and_what_holds_it_are_shown() -> None:
    """What Python knows of the memory comes first; user code is apart from other lines."""
    assert memory_lines(memory_of()) == [
        "count/3 in container 1: pid 77 on here",
        "memory of the process: 130.0 MiB, +30.0 MiB; "
        "Python's objects account for about 60.0 MiB of it (estimated from 25% of the containers)",
        "files, such as the code of libraries, are 20.0 MiB of it",
        "allocations were traced for 10.0 s; the tracer needed 1.0 MiB",
        "note: tracing ended",
        "",
        "lines that still hold what they allocated, user code:",
        "  grown     held     blocks  line",
        "  +3.0 MiB  5.0 MiB  5,000   /me/words.py, line 12",
        "           self.seen.append(tup)",
        "",
        "lines that still hold what they allocated, libraries and the engine:",
        "  grown  held  blocks  line",
        "  -20 B  10 B  1       /lib/json.py, line 3",
        "",
        "what holds memory:",
        "  grown     holds         entries  new entries  name         type",
        "  +3.0 MiB  over 9.0 MiB  15,000   +5,000       self.seen    list",
        "           /me/words.py, line 12: self.seen.append(tup)",
        "  0 B       100 B                               words.CACHE  words.Cache",
        "",
        "types:",
        "  grown   size     objects  new objects  type",
        "  +700 B  2.0 KiB  15,000   +5,000       words.Event",
        "  0 B     2.9 KiB  100                   str",
        "",
        "large buffers:",
        "  size     type           held by",
        "  8.0 MiB  numpy.ndarray  self.image",
    ]


def test_a_single_look_has_no_lines_and_no_growth() -> None:
    """The allocator says what it keeps, where it can."""
    lines = memory_lines(memory_of(FIRST, FIRST, 0.0))
    assert lines[1] == "memory of the process: 100.0 MiB; Python's objects account for about 40.0 MiB of it"
    assert lines[2] == "files, such as the code of libraries, are 20.0 MiB of it; the allocator keeps 3.0 MiB for later"
    assert not any(each.startswith("lines that") for each in lines)


def test_what_is_not_known_is_said() -> None:
    """An empty table would look like an empty task."""
    nothing = MemoryLook(0.0, 0.1, MIB, 0, None, 0, 0, 0.0)
    memory = TaskMemory("words", "count", 3, 1, 0, 77, "here", nothing, nothing, 1.0, 0, (), (), (), ())
    lines = memory_lines(memory)
    assert lines[1].endswith("account for about 0 B of it (not counted)")
    assert lines.count("  none") == 2
    assert "  nothing that is known" in lines
    assert lines[-1] == "  not counted"


def test_tuples_are_a_table_for_each_stream() -> None:
    """Control characters of a value cannot change the terminal."""
    received = (
        SampledTuple("words", 1, "default", ("word", "n"), ("'a'", "1")),
        SampledTuple("other", 2, "late", ("at",), ("5",)),
        SampledTuple("words", 4, "default", ("word", "n"), ("'a longer one'", "\x1b[2J")),
    )
    emitted = (SampledTuple("count", 3, "default", (), ()),)
    tuples = TaskTuples("words", "count", 3, 1, 0, 77, "here", 1.0, 2.5, 10, received, emitted)
    assert tuples_lines(tuples) == [
        "count/3: tuples of 2.5 s (pid 77 on here)",
        "",
        "received: 3 tuples",
        "  from words, stream default:",
        "    task  word            n",
        "    1     'a'             1",
        "    4     'a longer one'  \N{REPLACEMENT CHARACTER}[2J",
        "  from other, stream late:",
        "    task  at",
        "    2     5",
        "",
        "emitted: 1 tuple",
        "  by count, stream default:",
        "    task",
        "    3",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--seconds", "-1"), "-1.0 is not in the range 0.0<=x<=300.0"),
        (("--seconds", "301"), "301.0 is not in the range"),
    ],
)
def test_an_observation_of_memory_has_an_end(options: tuple[str, ...], expected: str) -> None:
    """A wrong number costs no connection."""
    result = CliRunner().invoke(memory_command, ["words", "count/3", *options])
    assert result.exit_code == 2
    assert expected in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--tuples", "0"), "0 is not in the range 1<=x<=100"),
        (("--tuples", "101"), "101 is not in the range"),
        (("--seconds", "0"), "0.0 is not in the range"),
    ],
)
def test_a_sample_is_small_and_has_an_end(options: tuple[str, ...], expected: str) -> None:
    """As the topology manager demands."""
    result = CliRunner().invoke(inspect_command, ["words", "count/3", *options])
    assert result.exit_code == 2
    assert expected in result.output
