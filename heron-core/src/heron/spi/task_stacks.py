"""The threads of a task at one moment, which the task returns: frozen values, JSON on the wire.

They have names of files and functions and lines of source, and no values of variables.
"""

from __future__ import annotations

import msgspec

from heron.spi.typed_values import decode_document

__all__ = ["StackFrame", "TaskStacks", "ThreadStack", "decode_stacks", "encode_stacks"]


class StackFrame(msgspec.Struct, frozen=True):
    """A call: its function and the line in which it is. `origin` is ``user``, ``library`` or ``engine``.

    `source` is that line, "" where the file cannot be read.
    """

    file: str
    line: int
    function: str
    origin: str
    source: str = ""


class ThreadStack(msgspec.Struct, frozen=True):
    """A thread. `role` is ``task`` (it runs the component), ``gateway`` (it owns the sockets) or ``other``.

    `state` is ``running`` (on a processor for part of the last 100 ms), ``ready`` (it waits for a processor) or
    ``waits``. Then `waits_for` says for what, "" where that is unknown. `cpu_share` is the part of the last 100 ms on a
    processor, from 0 to 1, and `cpu_s` the processor time since the thread began. The outermost of the `frames` is the
    first; `omitted` frames in the middle are left out.
    """

    name: str
    native_id: int
    role: str
    state: str
    cpu_share: float
    cpu_s: float
    waits_for: str
    frames: tuple[StackFrame, ...]
    omitted: int = 0


class TaskStacks(msgspec.Struct, frozen=True):
    """The threads of the process of a task but the one that looks, that of the component first.

    `at_s` is wall-clock seconds.
    """

    topology: str
    component: str
    task_id: int
    container_id: int
    incarnation: int
    pid: int
    host: str
    at_s: float
    threads: tuple[ThreadStack, ...]


def encode_stacks(stacks: TaskStacks) -> bytes:
    """The stacks as JSON."""
    return msgspec.json.encode(stacks)


def decode_stacks(data: bytes) -> TaskStacks:
    """The inverse of `encode_stacks`.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    return decode_document(data, TaskStacks, "stacks")
