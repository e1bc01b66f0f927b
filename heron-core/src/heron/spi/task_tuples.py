"""Tuples that a task has received and emitted, which the task returns: frozen values, JSON on the wire.

Values are text: shortened, and without the secrets that the task knows of.
"""

from __future__ import annotations

import msgspec

from heron.spi.typed_values import decode_document

__all__ = ["SampledTuple", "TaskTuples", "decode_tuples", "encode_tuples"]


class SampledTuple(msgspec.Struct, frozen=True):
    """A tuple: the task that emitted it, its stream, and a text for each of its fields."""

    component: str
    task_id: int
    stream: str
    fields: tuple[str, ...]
    values: tuple[str, ...]


class TaskTuples(msgspec.Struct, frozen=True):
    """The tuples that a task has received and emitted in `lasted_s` seconds from `began_at_s` (wall clock), in order.

    There are at most `wanted` of each. A spout receives none, and a bolt without outputs emits none.
    """

    topology: str
    component: str
    task_id: int
    container_id: int
    incarnation: int
    pid: int
    host: str
    began_at_s: float
    lasted_s: float
    wanted: int
    received: tuple[SampledTuple, ...]
    emitted: tuple[SampledTuple, ...]


def encode_tuples(tuples: TaskTuples) -> bytes:
    """The tuples as JSON."""
    return msgspec.json.encode(tuples)


def decode_tuples(data: bytes) -> TaskTuples:
    """The inverse of `encode_tuples`.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    return decode_document(data, TaskTuples, "a sample of tuples")
