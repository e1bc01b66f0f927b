"""What the components of a program do with each tuple; components and oracle read it here.

The identity of a tuple says where it comes from: ``lines.0:4/1`` is emit 1 in call 4 of the first task of `lines`, and
``lines.0:4/1>split.2`` is what `split` emits third for it. Every decision about a tuple is a function of its identity
and attempt, so it is the same in every process and in each replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache

from heron.api import ICustomGrouping
from heron.driver_kit.loading import load_object
from heron_testing.random_topologies.program import BoltProgram, Call, Emit, Program, SpoutProgram
from heron_testing.random_topologies.values import hash_of

__all__ = [
    "FIELDS",
    "Fate",
    "Root",
    "children_of",
    "custom_grouping",
    "fate_of",
    "has_columns",
    "is_custom",
    "roots_of",
]

FIELDS = ("identity", "attempt", "key", "value")
"""The fields of every stream."""


class Fate(Enum):
    """What a bolt does with a tuple."""

    ACKED = "acked"
    FAILED = "failed"
    RAISED = "raised"


@dataclass(frozen=True, slots=True)
class Root:
    """What is emitted with one id: a tuple, or a batch of columns.

    Attributes:
        identity: the id.
        columns: whether it is emitted as columns.
        emits: ``(identity, emit)`` of each of its tuples.
    """

    identity: str
    columns: bool
    emits: tuple[tuple[str, Emit], ...]


def roots_of(spout: SpoutProgram, task_index: int, number: int) -> Iterator[Root]:
    """The roots of call `number` of a task; calls are repeated in turn."""
    call = spout.calls[number % len(spout.calls)]
    prefix = f"{spout.name}.{task_index}:{number}"
    named = [(f"{prefix}/{place}", emit) for place, emit in enumerate(call.emits)]
    if call.form == "batch":
        yield from _batches(call, prefix, named)
    else:
        for identity, emit in named:
            yield Root(identity, call.form == "ids", ((identity, emit),))


def _batches(call: Call, prefix: str, named: list[tuple[str, Emit]]) -> Iterator[Root]:
    for stream in dict.fromkeys(emit.stream for emit in call.emits):
        yield Root(f"{prefix}/{stream}", True, tuple(each for each in named if each[1].stream == stream))


def fate_of(bolt: BoltProgram, identity: str, attempt: int) -> Fate:
    """What a bolt does with a tuple."""
    if attempt > 1:
        return Fate.ACKED
    draw = hash_of(f"{bolt.name} {identity}") % 100
    if draw < bolt.fails:
        return Fate.FAILED
    return Fate.RAISED if draw < bolt.fails + bolt.raises else Fate.ACKED


def children_of(bolt: BoltProgram, identity: str) -> Iterator[tuple[str, str]]:
    """``(identity, stream)`` of each tuple that a bolt emits for a tuple."""
    for number in range(bolt.fan_out):
        yield f"{identity}>{bolt.name}.{number}", bolt.streams[number % len(bolt.streams)]


def custom_grouping(name: str) -> ICustomGrouping:
    """A new object of the class of the grouping ``custom MODULE:CLASS``.

    Raises:
        PluginError: when there is no such name.
        TypeError: when it is not a class of groupings.
    """
    return _grouping_class(name)()


@cache
def _grouping_class(name: str) -> type[ICustomGrouping]:
    found = load_object(name.removeprefix("custom "))
    if not (isinstance(found, type) and issubclass(found, ICustomGrouping)):
        msg = f"grouping {name!r}: {found!r:.60} is not an ICustomGrouping; name a class that is derived from it"
        raise TypeError(msg)
    return found


def is_custom(grouping: str) -> bool:
    """Whether the grouping of an input is a custom one."""
    return grouping.startswith("custom ")


def has_columns(program: Program) -> bool:
    """Whether any component emits or receives columns."""
    return any(spout.columns for spout in program.spouts) or any(
        "columns" in (bolt.receives, bolt.emits) for bolt in program.bolts
    )
