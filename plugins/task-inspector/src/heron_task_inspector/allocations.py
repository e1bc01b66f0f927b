"""Which lines allocate memory that stays: tracemalloc, for as long as somebody observes.

The innermost line of user code stands for what it calls, so a list that a library fills counts for the author's line.
Tracing makes every allocation of the process dearer, and a snapshot stops all threads, in proportion to the number of
blocks. Both are bounded by the memory that the tracer may need.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Mapping
from pathlib import Path

from heron.driver_kit.code_origin import CodeOrigin, code_origin
from heron.spi.task_memory import AllocatingLine
from heron_task_inspector.source_line import source_line

__all__ = ["AllocationTrace", "HeldByLine", "allocating_lines", "held_by_line"]

_FRAMES = 3  # of each allocation: the author's line, and a library's below; each one costs every allocation
_MOST_BYTES = 8 << 20  # of the tracer: about 170,000 blocks, for which a snapshot takes less than 0.1 s
_SHOWN = 30
_OWN = frozenset(str(Path(__file__).with_name(name)) for name in ("allocations.py", "memory_observer.py"))

_Place = tuple[str, int]
_Frames = tuple[_Place, ...]

HeldByLine = dict[_Place, tuple[int, int]]
"""Bytes and blocks by file and line."""


class AllocationTrace:
    """The tracer of this process while it is on."""

    def __init__(self) -> None:
        """Begins to trace, unless somebody else does."""
        self.is_foreign = tracemalloc.is_tracing()
        if not self.is_foreign:
            tracemalloc.start(_FRAMES)

    def used_bytes(self) -> int:
        """The memory that the tracer needs now."""
        return tracemalloc.get_tracemalloc_memory()

    def filled(self) -> float:
        """The part of the tracer's bound that is used: from 1, tracing must end."""
        return self.used_bytes() / _MOST_BYTES

    def held(self, modules: Mapping[str, str]) -> HeldByLine:
        """What was allocated since the begin and is still held; nothing if the component has ended the trace."""
        if self.is_foreign or not tracemalloc.is_tracing():
            return {}
        found = tracemalloc.take_snapshot().statistics("traceback")
        stacks = ((tuple((f.filename, f.lineno) for f in each.traceback), each.size, each.count) for each in found)
        return held_by_line(stacks, modules)

    def end(self) -> None:
        """Ends the trace; idempotent."""
        if not self.is_foreign:
            tracemalloc.stop()


def held_by_line(stacks: Iterable[tuple[_Frames, int, int]], modules: Mapping[str, str]) -> HeldByLine:
    """Sums bytes and blocks by line; each stack begins with its outermost frame. The observer's own are left out."""
    found: HeldByLine = {}
    origins: dict[str, CodeOrigin] = {}

    def is_user(file: str) -> bool:
        if file not in origins:
            origins[file] = code_origin(file, modules.get(file, ""))
        return origins[file] is CodeOrigin.USER

    for frames, size_bytes, blocks in stacks:
        if frames and not any(file in _OWN for file, _ in frames):
            place = next((each for each in reversed(frames) if is_user(each[0])), frames[-1])
            held = found.get(place, (0, 0))
            found[place] = (held[0] + size_bytes, held[1] + blocks)
    return found


def allocating_lines(half: HeldByLine, end: HeldByLine, modules: Mapping[str, str]) -> tuple[AllocatingLine, ...]:
    """The lines that hold the most, those that grow first; the lines of user code are always among them."""
    lines = []
    for (file, line), (size_bytes, blocks) in end.items():
        origin = code_origin(file, modules.get(file, ""))
        grown_bytes = size_bytes - half.get((file, line), (0, 0))[0]
        lines.append(AllocatingLine(file, line, origin.value, "", size_bytes, blocks, grown_bytes))
    lines.sort(key=lambda each: (-each.grown_bytes, -each.held_bytes, each.file, each.line))
    user = [each for each in lines if each.origin == CodeOrigin.USER][:_SHOWN]
    others = [each for each in lines if each.origin != CodeOrigin.USER][:_SHOWN]
    return tuple(_with_source(each) for each in (*user, *others))


def _with_source(line: AllocatingLine) -> AllocatingLine:
    source = source_line(line.file, line.line)
    return AllocatingLine(
        line.file, line.line, line.origin, source, line.held_bytes, line.held_blocks, line.grown_bytes
    )
