"""How many objects there are, and how large they are, from a look at some of them. Runs no code of their classes.

A container is asked through the methods of the built-in types, so a subclass that overrides them is never called.
Every look has a budget. What a container holds beyond the first hundred entries is assumed to be like them.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import cast

from heron.api.tuple import Tuple

__all__ = [
    "LARGE_BYTES",
    "ObjectCount",
    "attributes_of",
    "entries_of",
    "first_entries",
    "is_program",
    "type_name",
]

LARGE_BYTES = 1 << 20
_ENTRIES = 100  # of a container that are looked at
_REFERENTS = 1000  # of an object of another kind
_GC_HEAD_BYTES = 16
_ENGINE = ("heron.", "heron_")
_PROGRAM = (ModuleType, type, FunctionType, BuiltinFunctionType, MethodType, CodeType, FrameType)
_BUFFERS = frozenset(map(id, (bytes, bytearray, str)))  # by id: to compare types would call the metaclass
_LEAVES = _BUFFERS | frozenset(map(id, (int, float, bool, complex)))
_ARRAYS = frozenset({"numpy.ndarray", "array.array", "mmap.mmap", "pyarrow.lib.Buffer"})

_Items = Callable[[object], Iterable[object]]
_Length = Callable[[object], int]


def _pairs(held: object) -> Iterator[object]:
    return chain.from_iterable(dict.items(cast("dict[object, object]", held)))


_CONTAINERS: tuple[tuple[type, _Items, _Length, int], ...] = (
    (dict, _pairs, cast("_Length", dict.__len__), 2),
    (list, cast("_Items", list.__iter__), cast("_Length", list.__len__), 1),
    (tuple, cast("_Items", tuple.__iter__), cast("_Length", tuple.__len__), 1),
    (set, cast("_Items", set.__iter__), cast("_Length", set.__len__), 1),
    (frozenset, cast("_Items", frozenset.__iter__), cast("_Length", frozenset.__len__), 1),
    (deque, cast("_Items", deque.__iter__), cast("_Length", deque.__len__), 1),
)


def entries_of(held: object) -> int | None:
    """The number of entries of a built-in container, text or bytes; None for other objects."""
    for kind, _, length, _ in _CONTAINERS:
        if issubclass(type(held), kind):
            return length(held)
    return len(held) if id(type(held)) in _BUFFERS else None  # type: ignore[arg-type]  # each of these has a length


def first_entries(held: object, number: int) -> list[object]:
    """The first entries of a built-in container, key and value alternately for a dict; empty for other objects.

    Raises:
        RuntimeError: when another thread changes it meanwhile.
    """
    for kind, items, _, factor in _CONTAINERS:
        if issubclass(type(held), kind):
            return list(islice(items(held), number * factor))
    return []


def attributes_of(held: object) -> dict[str, object]:
    """The attributes of an object; empty if it has no `__dict__` of its own."""
    for base in type.__getattribute__(type(held), "__mro__"):
        found = type.__getattribute__(base, "__dict__").get("__dict__")
        if found is not None:  # a property of the author's class is not called
            is_plain = type(found) is GetSetDescriptorType and not issubclass(type(held), type)
            return cast("dict[str, object]", found.__get__(held)) if is_plain else {}
    return {}


def type_name(kind: type) -> str:
    """The name of a type with its module, without code of a metaclass."""
    module = type.__getattribute__(kind, "__module__")
    name = str(type.__getattribute__(kind, "__qualname__"))
    return name if module == "builtins" or not isinstance(module, str) else f"{module}.{name}"


def is_program(held: object) -> bool:
    """Whether an object is code, or belongs to the engine: nothing that the author's data consists of."""
    kind = type(held)
    if issubclass(kind, Tuple):  # the author keeps it
        return False
    return issubclass(kind, _PROGRAM) or type_name(kind).startswith(_ENGINE)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is known of a type; it is kept, so that its address stays its own."""

    type: type
    name: str
    has_native_size: bool
    is_program: bool


class ObjectCount:
    """Counts objects until the budget is used up. `types` has a number and bytes by type, each as an estimate."""

    def __init__(self, budget: int, seen: Iterable[int] = ()) -> None:
        """`seen` are the addresses of objects that are left out."""
        self.types: dict[str, tuple[float, float]] = {}
        self.buffers: list[tuple[str, int, str]] = []
        self.seen: set[int] = set(seen)
        self._left = budget
        self._kinds: dict[int, _Kind] = {}

    @property
    def is_used_up(self) -> bool:
        """Whether nothing more can be counted."""
        return self._left <= 0

    def add(self, root: object) -> None:
        """Counts an object, with the parts of it that no collector tracks, and with tuples."""
        self._count([root], "", whole=False)

    def add_whole(self, roots: Iterable[object], name: str, budget: int) -> tuple[int, bool]:
        """Counts objects with all that they hold; returns the bytes, and whether that is all.

        What was counted before is left out. `name` is what holds the large buffers. Counts at most `budget` objects.
        """
        kept, self._left = max(0, self._left - budget), min(self._left, budget)
        size_bytes, is_all = self._count(roots, name, whole=True)
        self._left += kept
        return round(size_bytes), is_all

    def _count(self, roots: Iterable[object], name: str, *, whole: bool) -> tuple[float, bool]:
        """Breadth first, so that a budget which is too small is spread."""
        waiting: deque[tuple[object, float]] = deque((each, 1.0) for each in roots)
        total = 0.0
        while waiting and self._left > 0:
            held, weight = waiting.popleft()
            if id(held) in self.seen:
                continue
            self.seen.add(id(held))
            self._left -= 1
            total += self._add_one(held, weight, name) * weight
            parts, factor = _parts(held)
            for part in parts:
                if part is not None and (not self._kind(part).is_program if whole else _has_no_other_way(part)):
                    waiting.append((part, weight * factor))
        return total, not waiting

    def _add_one(self, held: object, weight: float, name: str) -> int:
        kind = self._kind(held)
        size_bytes = sys.getsizeof(held) if kind.has_native_size else object.__sizeof__(held) + _GC_HEAD_BYTES
        number, total = self.types.get(kind.name, (0.0, 0.0))
        self.types[kind.name] = (number + weight, total + size_bytes * weight)
        if size_bytes >= LARGE_BYTES and (id(kind.type) in _BUFFERS or kind.name in _ARRAYS):
            self.buffers.append((kind.name, size_bytes, name))
        return size_bytes

    def _kind(self, held: object) -> _Kind:
        kind = type(held)
        known = self._kinds.get(id(kind))
        if known is None:
            known = _Kind(kind, type_name(kind), _has_native_size(kind), is_program(held))
            self._kinds[id(kind)] = known
        return known


def _has_native_size(kind: type) -> bool:
    """Whether `sys.getsizeof` runs no Python code for a type."""
    for base in type.__getattribute__(kind, "__mro__"):
        found = type.__getattribute__(base, "__dict__").get("__sizeof__")
        if found is not None:
            return type(found) in (MethodDescriptorType, WrapperDescriptorType)
    return False


def _has_no_other_way(part: object) -> bool:
    """Whether an object is only found in what holds it: it is not among the tracked ones that are looked at."""
    return type(part) is tuple or not gc.is_tracked(part)


def _parts(held: object) -> tuple[list[object], float]:
    """Some objects that an object refers to, and for how many each of them stands."""
    kind = type(held)
    for base, items, length, factor in _CONTAINERS:
        if issubclass(kind, base):
            number = length(held) * factor
            try:
                if base is list and number <= _REFERENTS:  # one that native code still fills has places without objects
                    parts = gc.get_referents(held)[:_ENTRIES]
                else:
                    parts = list(islice(items(held), _ENTRIES * factor))
            except RuntimeError:  # another thread has changed it
                return [], 1.0
            return parts, max(1.0, number / max(1, len(parts)))
    if id(kind) in _LEAVES:
        return [], 1.0
    parts = gc.get_referents(held)
    return parts[:_REFERENTS], max(1.0, len(parts) / _REFERENTS)
