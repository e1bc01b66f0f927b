"""Topologies and plans as JSON, for the state manager and the wire: an envelope that says what it holds, and how.

    {"format": 1, "kind": "packing_plan", "value": {...}}

`format` grows when a reader of the old one would misread the new one; fields that a reader does not know are skipped,
so that a newer writer may add some within a format.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from xxhash import xxh3_64_hexdigest

from heron.api.definition import TopologyDefinition
from heron.errors import StateError
from heron.planner.packing_plan import ContainerPlan, PackingPlan
from heron.planner.physical_plan import PhysicalPlan

__all__ = [
    "FORMAT",
    "decode_packing_plan",
    "decode_physical_plan",
    "decode_topology",
    "encode",
    "fingerprint",
]

FORMAT: Final = 1
"""The format this version writes, and the only one it reads."""

_KINDS: Final[dict[type, str]] = {
    TopologyDefinition: "topology",
    PackingPlan: "packing_plan",
    PhysicalPlan: "physical_plan",
}

T = TypeVar("T")


class _Envelope(msgspec.Struct):
    format: int
    kind: str
    value: msgspec.Raw


def encode(value: TopologyDefinition | PackingPlan | PhysicalPlan) -> bytes:
    """The value as JSON; equal values give equal bytes.

    Raises:
        StateError: when a configuration holds what JSON cannot (a type that has no form there).
    """
    kind = _KINDS[type(value)]
    try:
        return msgspec.json.encode({"format": FORMAT, "kind": kind, "value": value}, order="deterministic")
    except (TypeError, OverflowError, ValueError, RecursionError) as error:
        msg = f"{_spoken(kind)} cannot be written as JSON: {error}"
        raise StateError(msg) from error


def decode_topology(data: bytes, place: str) -> TopologyDefinition:
    """The topology that `encode` wrote; `place` says in errors where `data` is from, such as a node's name.

    Raises:
        StateError: when `data` is garbled, of another kind, or of a format that this version does not read.
    """
    return _decode(data, TopologyDefinition, place)


def decode_packing_plan(data: bytes, place: str) -> PackingPlan:
    """The packing plan that `encode` wrote; as `decode_topology`."""
    return _decode(data, PackingPlan, place)


def decode_physical_plan(data: bytes, place: str) -> PhysicalPlan:
    """The physical plan that `encode` wrote; as `decode_topology`."""
    return _decode(data, PhysicalPlan, place)


def fingerprint(containers: tuple[ContainerPlan, ...], last_task_id: int) -> str:
    """An id for a packing plan of this content: the same for the same content, 16 hexadecimal digits."""
    return xxh3_64_hexdigest(msgspec.json.encode([containers, last_task_id], order="deterministic"))


def _decode(data: bytes, to: type[T], place: str) -> T:
    kind = _KINDS[to]
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if (envelope.format, envelope.kind) == (FORMAT, kind):
            return msgspec.json.decode(envelope.value, type=to)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"{place}: not a readable {_spoken(kind)} of {len(data)} bytes: {_lowered(str(error))}"
        raise StateError(msg) from error
    if envelope.kind != kind:
        msg = f"{place}: holds a {_spoken(envelope.kind)}, not a {_spoken(kind)}"
        raise StateError(msg)
    msg = (
        f"{place}: the {_spoken(kind)} is of format {envelope.format}, this version reads {FORMAT}; "
        "use the version of heron-core that wrote it"
    )
    raise StateError(msg)


def _spoken(kind: str) -> str:
    return kind.replace("_", " ")[:40]


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
