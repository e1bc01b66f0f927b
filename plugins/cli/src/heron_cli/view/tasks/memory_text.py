"""Renders the memory of a task for people: user code apart from libraries and the engine, growth first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.spi.task_memory import AllocatingLine, HeldMemory, MemoryLook, TaskMemory
from heron_cli.view.text import columns, format_bytes, format_count

__all__ = ["memory_lines"]

_SHOWN = 10


def memory_lines(memory: TaskMemory) -> list[str]:
    """Return the lines: the process, the lines that hold memory, what holds it, types, and large buffers."""
    task, process = f"{memory.component}/{memory.task_id}", f"pid {memory.pid} on {memory.host}"
    first, second = memory.first, memory.second
    lines = [f"{task} in container {memory.container_id}: {process}", *_process(first, second)]
    if memory.traced_s:
        used = format_bytes(memory.tracer_bytes)
        lines.append(f"allocations were traced for {memory.traced_s:.1f} s; the tracer needed {used}")
    lines += [f"note: {each}" for each in memory.notes]
    if memory.traced_s:
        for title, origins in (("user code", ("user",)), ("libraries and the engine", ("library", "engine"))):
            chosen = [each for each in memory.lines if each.origin in origins]
            lines += ["", f"lines that still hold what they allocated, {title}:", *_lines(chosen[:_SHOWN])]
    lines += ["", "what holds memory:", *_held(memory.held[:_SHOWN])]
    lines += ["", "types:", *_types(memory)]
    if memory.buffers:
        rows = [(f"  {format_bytes(each.size_bytes)}", each.type, each.held_by) for each in memory.buffers[:_SHOWN]]
        lines += ["", "large buffers:", *columns([("  size", "type", "held by"), *rows])]
    return lines


def signed_bytes(count: int) -> str:
    """``+1.5 KiB``, ``-3 B``, ``0 B``."""
    sign = "+" if count > 0 else "-" if count < 0 else ""
    return f"{sign}{format_bytes(abs(count))}"


def _process(first: MemoryLook, second: MemoryLook) -> Iterator[str]:
    grown = "" if second == first else f", {signed_bytes(second.resident_bytes - first.resident_bytes)}"
    known = f"Python's objects account for about {format_bytes(second.objects_bytes)} of it"
    if second.share < 1:
        known += f" (estimated from {second.share:.0%} of the containers)" if second.share else " (not counted)"
    yield f"memory of the process: {format_bytes(second.resident_bytes)}{grown}; {known}"
    free = second.allocator_free_bytes
    kept = "" if free is None else f"; the allocator keeps {format_bytes(free)} for later"
    yield f"files, such as the code of libraries, are {format_bytes(second.file_bytes)} of it{kept}"


def _lines(chosen: Sequence[AllocatingLine]) -> Iterator[str]:
    if not chosen:
        yield "  none"
        return
    rows = [("  grown", "held", "blocks", "line")]
    for each in chosen:
        grown, held = signed_bytes(each.grown_bytes), format_bytes(each.held_bytes)
        rows.append((f"  {grown}", held, format_count(each.held_blocks), f"{each.file}, line {each.line}"))
    for number, line in enumerate(columns(rows)):
        yield line
        if number and chosen[number - 1].source:
            yield f"           {chosen[number - 1].source}"


def _held(chosen: Sequence[HeldMemory]) -> Iterator[str]:
    if not chosen:
        yield "  nothing that is known"
        return
    rows = [("  grown", "holds", "entries", "new entries", "name", "type")]
    for each in chosen:
        entries = "" if each.entries is None else format_count(each.entries)
        more = f"{each.grown_entries:+,}" if each.entries is not None and each.grown_entries else ""
        holds = f"{'over ' if each.at_least else ''}{format_bytes(each.held_bytes)}"
        rows.append((f"  {signed_bytes(each.grown_bytes)}", holds, entries, more, each.name, each.type))
    for number, line in enumerate(columns(rows)):
        yield line
        if number:
            yield from (
                f"           {each.file}, line {each.line}: {each.source}" for each in chosen[number - 1].used_at
            )


def _types(memory: TaskMemory) -> list[str]:
    if not memory.types:
        return ["  not counted"]
    growing = sorted(memory.types, key=lambda each: -each.grown_bytes)[: _SHOWN // 2]
    chosen = dict.fromkeys((*(each for each in growing if each.grown_bytes > 0), *memory.types[:_SHOWN]))
    rows = [("  grown", "size", "objects", "new objects", "type")]
    for each in tuple(chosen)[:_SHOWN]:
        more = f"{each.grown_objects:+,}" if each.grown_objects else ""
        size, number = format_bytes(each.own_bytes), format_count(each.objects)
        rows.append((f"  {signed_bytes(each.grown_bytes)}", size, number, more, each.name))
    return columns(rows)
