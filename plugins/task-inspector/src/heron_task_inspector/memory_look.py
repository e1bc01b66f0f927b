"""One look at the memory of this process: what the kernel says, the objects by type, and what holds them."""

from __future__ import annotations

import gc
import operator
import random
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress, islice

from heron.clock import monotonic_s, wall_s
from heron.spi.task_memory import HeldMemory, LargeBuffer, MemoryLook, TypeMemory
from heron_task_inspector.memory_holders import Holder, holders_of
from heron_task_inspector.object_sizes import ObjectCount
from heron_task_inspector.process_memory import allocator_free_bytes, resident_bytes

__all__ = ["MOST_BLOCKS", "HeldNow", "SeenMemory", "held_growth", "look_at_memory", "type_growth"]

MOST_BLOCKS = 10_000_000  # the list of their objects stops the task as long as a full collection does
_BLOCKS_A_STEP = 1_000_000
_STEPS = (1, 3, 5, 7, 11)  # primes, because objects are made in patterns: three for each tuple, for example
_SAMPLE = 30_000  # containers that are looked at
_OBJECTS = 60_000  # that are counted: about 0.3 s of processor time
_OF_A_HOLDER = 5_000
_AT_ONCE, _HOLDERS_AT_ONCE, _PAUSE_S = 500, 25, 0.002  # the task thread runs in between
_SHOWN = 30

_Counted = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class HeldNow:
    """What a holder holds: its type, entries, bytes, and whether it holds more than was counted."""

    type: str
    entries: int | None
    held_bytes: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class SeenMemory:
    """What one look has seen: a summary, number and bytes by type, what each holder holds, the largest buffers."""

    look: MemoryLook
    types: Mapping[str, tuple[int, int]]
    held: Mapping[str, HeldNow]
    buffers: tuple[LargeBuffer, ...]


def look_at_memory(component: object, states: Mapping[str, Sequence[object]], stop: threading.Event) -> SeenMemory:
    """Looks, with pauses for other threads; `stop` ends it early."""
    began_s, at_s = monotonic_s(), wall_s()
    resident, files = resident_bytes()
    holders = holders_of(component, states)
    held, buffers = _held_by(holders, stop)
    roots = ObjectCount(_OBJECTS)
    for root in (each for holder in holders for each in holder.roots):
        roots.add(root)
    sample, share = _sample(roots.seen, stop)
    types = _joined(roots.types, sample.types, share)
    named = {each[:2] for each in buffers}
    all_buffers = [*buffers, *(each for each in sample.buffers if each[:2] not in named)]
    all_buffers.sort(key=lambda each: -each[1])
    look = MemoryLook(
        at_s,
        round(monotonic_s() - began_s, 3),
        resident,
        files,
        allocator_free_bytes(),
        sum(size_bytes for _, size_bytes in types.values()),
        sum(number for number, _ in types.values()),
        round(share, 6),
    )
    return SeenMemory(look, types, held, tuple(LargeBuffer(*each) for each in all_buffers[:_SHOWN]))


def type_growth(before: Mapping[str, tuple[int, int]], now: Mapping[str, tuple[int, int]]) -> tuple[TypeMemory, ...]:
    """The largest types, and those that grow most."""
    found = []
    for name, (number, size_bytes) in now.items():
        former, former_bytes = before.get(name, (0, 0))
        found.append(TypeMemory(name, number, size_bytes, number - former, size_bytes - former_bytes))
    largest = sorted(found, key=lambda each: (-each.own_bytes, each.name))[:_SHOWN]
    growing = sorted(found, key=lambda each: (-each.grown_bytes, each.name))[:_SHOWN]
    return tuple(dict.fromkeys((*largest, *(each for each in growing if each.grown_bytes > 0))))


def held_growth(before: Mapping[str, HeldNow], now: Mapping[str, HeldNow]) -> tuple[HeldMemory, ...]:
    """What holds the most, and what grows most; a name that is new has grown by all that it holds."""
    found = []
    for name, each in now.items():
        former = before.get(name, HeldNow(each.type, 0, 0, at_least=False))
        entries = (each.entries or 0) - (former.entries or 0)
        grown_bytes = each.held_bytes - former.held_bytes
        found.append(HeldMemory(name, each.type, each.entries, each.held_bytes, entries, grown_bytes, each.at_least))
    largest = sorted(found, key=lambda each: (-each.held_bytes, each.name))[:_SHOWN]
    growing = sorted(found, key=lambda each: (-each.grown_bytes, each.name))[:_SHOWN]
    return tuple(dict.fromkeys((*largest, *(each for each in growing if each.grown_bytes > 0))))


def _held_by(holders: Iterable[Holder], stop: threading.Event) -> tuple[dict[str, HeldNow], list[tuple[str, int, str]]]:
    count, found = ObjectCount(_OBJECTS), {}
    for number, holder in enumerate(holders):
        size_bytes, is_all = count.add_whole(holder.roots, holder.name, _OF_A_HOLDER)
        found[holder.name] = HeldNow(holder.type, holder.entries(), size_bytes, at_least=not is_all)
        if number % _HOLDERS_AT_ONCE == 0:
            stop.wait(_PAUSE_S)
    return found, count.buffers


def _sample(seen: set[int], stop: threading.Event) -> tuple[ObjectCount, float]:
    """Counts a random sample of the containers that the collector knows; returns also their share of all."""
    count = ObjectCount(_OBJECTS, seen)
    blocks = sys.getallocatedblocks()
    if blocks > MOST_BLOCKS:
        return count, 0.0
    step = next(each for each in _STEPS if each * _BLOCKS_A_STEP >= blocks)
    objects = _tracked_objects(step)
    number = len(objects) * step
    chosen = random.Random(0).sample(objects, min(len(objects), _SAMPLE))  # noqa: S311  # the author's stays as it is
    del objects  # it keeps everything alive
    counted = 0
    while chosen and not count.is_used_up and not stop.is_set():
        now = chosen[-_AT_ONCE:]
        del chosen[-_AT_ONCE:]
        for each in now:
            count.add(each)
        counted += len(now)
        stop.wait(_PAUSE_S)
    return count, counted / max(1, number)


def _tracked_objects(step: int) -> list[object]:
    """Every `step`-th object that the collector knows, without tuples: these are found in what holds them.

    A tuple that another thread is making (`tuple(generator)`) is among these objects. If anything else refers to it
    when it is complete, CPython raises SystemError there. So no other thread may run while this function has such
    tuples. The interpreter changes threads at calls and jumps, and there is none between the two marks below.
    """
    objects: list[object] = []  # the iterators below read it after it is filled
    source = islice(chain.from_iterable(map(gc.get_objects, (None,))), 0, None, step)
    others = compress(objects, map(partial(operator.is_not, tuple), map(type, objects)))
    was_enabled = gc.isenabled()
    gc.disable()  # a collection would call finalizers
    objects += source  # the first mark
    found = [*others]
    del objects[:]  # the second mark
    if was_enabled:
        gc.enable()
    return found


def _joined(roots: _Counted, sample: _Counted, share: float) -> dict[str, tuple[int, int]]:
    """All objects by type: those of the roots, and those for which the sample stands."""
    factor = 1.0 / share if share else 0.0
    found = {}
    for name in {**roots, **sample}:
        (number, size_bytes), (more, more_bytes) = roots.get(name, (0.0, 0.0)), sample.get(name, (0.0, 0.0))
        found[name] = (round(number + more * factor), round(size_bytes + more_bytes * factor))
    return found
