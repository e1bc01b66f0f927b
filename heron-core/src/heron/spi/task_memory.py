"""What the memory of a task holds, and what grows in it, which the task returns: frozen values, JSON on the wire.

They have names of types, files, attributes and states, lines of source, sizes and numbers, and no values.
"""

from __future__ import annotations

import msgspec

from heron.spi.typed_values import decode_document

__all__ = [
    "AllocatingLine",
    "HeldMemory",
    "LargeBuffer",
    "MemoryLook",
    "TaskMemory",
    "TypeMemory",
    "decode_memory",
    "encode_memory",
]


class MemoryLook(msgspec.Struct, frozen=True):
    """The process at one moment: `at_s` in wall-clock seconds, the others in bytes.

    `resident_bytes` is its part of the machine's memory, `file_bytes` the part of that which belongs to files (code of
    libraries). `objects_bytes` is the estimated size of the Python objects that were found, `objects` their number.
    `share` of the containers were looked at, from 0 to 1; 0 means none, because there are too many. `took_s` is the
    time of the look. `allocator_free_bytes` is what the allocator of C keeps for later; None where that is unknown.
    """

    at_s: float
    took_s: float
    resident_bytes: int
    file_bytes: int
    allocator_free_bytes: int | None
    objects_bytes: int
    objects: int
    share: float


class TypeMemory(msgspec.Struct, frozen=True):
    """The objects of a type at the second look, without the objects they refer to; and the difference to the first."""

    name: str
    objects: int
    own_bytes: int
    grown_objects: int
    grown_bytes: int


class AllocatingLine(msgspec.Struct, frozen=True):
    """A line that has allocated memory between the looks which was still held at the end of the observation.

    `origin` is ``user``, ``library`` or ``engine``; a line of user code also stands for what it calls. `grown_bytes` is
    the part that was added in the second half: a cache that is full holds memory, but grows no more.
    """

    file: str
    line: int
    origin: str
    source: str
    held_bytes: int
    held_blocks: int
    grown_bytes: int


class CodeLine(msgspec.Struct, frozen=True):
    """A line of the author's code."""

    file: str
    line: int
    source: str


class HeldMemory(msgspec.Struct, frozen=True):
    """An attribute of the component, a keyed state, or a global name of the author's modules, with all that it holds.

    `entries` is None where it has no length. `at_least` is whether it holds more than was counted. `used_at` are lines
    of the component that use the attribute, if it grows.
    """

    name: str
    type: str
    entries: int | None
    held_bytes: int
    grown_entries: int
    grown_bytes: int
    at_least: bool = False
    used_at: tuple[CodeLine, ...] = ()


class LargeBuffer(msgspec.Struct, frozen=True):
    """A bytes, bytearray, text or array of at least 1 MiB. `held_by` is as `HeldMemory.name`, "" where unknown."""

    type: str
    size_bytes: int
    held_by: str


class TaskMemory(msgspec.Struct, frozen=True):
    """The memory of a task. The largest come first in each list, and those of lines and types that grow.

    `traced_s` is the time in which allocations were traced, 0 for a single look. `tracer_bytes` is the memory that the
    tracer needed. `notes` say, for people, what is missing and why.
    """

    topology: str
    component: str
    task_id: int
    container_id: int
    incarnation: int
    pid: int
    host: str
    first: MemoryLook
    second: MemoryLook
    traced_s: float
    tracer_bytes: int
    types: tuple[TypeMemory, ...]
    lines: tuple[AllocatingLine, ...]
    held: tuple[HeldMemory, ...]
    buffers: tuple[LargeBuffer, ...]
    notes: tuple[str, ...] = ()


def encode_memory(memory: TaskMemory) -> bytes:
    """The memory as JSON."""
    return msgspec.json.encode(memory)


def decode_memory(data: bytes) -> TaskMemory:
    """The inverse of `encode_memory`.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    return decode_document(data, TaskMemory, "a document about memory")
