"""The nodes TOPOLOGY, PACKING_PLAN and PHYSICAL_PLAN, each an envelope with its format and kind:

    {"format": 1, "kind": "packing_plan", "value": {...}}

The same bytes travel in messages (see WIRE.md).
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from heron.api.definition import TopologyDefinition
from heron.errors import StateError
from heron.planner.packing_plan import InstancePlan, PackingPlan
from heron.planner.physical_plan import PhysicalPlan
from heron.spi.typed_values import decode_document, decode_json
from heron.state_nodes.document import Format, check_format

__all__ = [
    "decode_packing_plan",
    "decode_physical_plan",
    "decode_tasks",
    "decode_topology",
    "encode_plan",
    "encode_tasks",
]

_FORMAT: Final = 1

_KINDS: Final[dict[type, str]] = {
    TopologyDefinition: "topology",
    PackingPlan: "packing_plan",
    PhysicalPlan: "physical_plan",
}

T = TypeVar("T")


class _Envelope(msgspec.Struct):
    kind: str
    value: msgspec.Raw
    format: Format = 1


def encode_plan(value: TopologyDefinition | PackingPlan | PhysicalPlan) -> bytes:
    """The value as JSON; equal values give equal bytes.

    Raises:
        StateError: when a configuration holds a value of a type that JSON does not have.
    """
    kind = _KINDS[type(value)]
    try:
        return msgspec.json.encode({"format": _FORMAT, "kind": kind, "value": value}, order="deterministic")
    except (TypeError, OverflowError, ValueError, RecursionError) as error:
        msg = f"{_in_words(kind)} cannot be written as JSON: {error}"
        raise StateError(msg) from error


def decode_topology(data: bytes, place: str) -> TopologyDefinition:
    """The topology that `encode_plan` wrote; `place` names in errors where `data` comes from, such as a node.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote it.
        StateError: when `data` is garbled or of another kind.
    """
    return _decode(data, TopologyDefinition, place)


def decode_packing_plan(data: bytes, place: str) -> PackingPlan:
    """The packing plan that `encode_plan` wrote; parameters and errors as for `decode_topology`."""
    return _decode(data, PackingPlan, place)


def decode_physical_plan(data: bytes, place: str) -> PhysicalPlan:
    """The physical plan that `encode_plan` wrote; parameters and errors as for `decode_topology`."""
    return _decode(data, PhysicalPlan, place)


def encode_tasks(tasks: tuple[InstancePlan, ...]) -> bytes:
    """The tasks of a container, for a message to its executor."""
    return msgspec.json.encode(tasks)


def decode_tasks(data: bytes) -> tuple[InstancePlan, ...]:
    """The inverse of `encode_tasks`.

    Raises:
        RemoteProtocolError: when the bytes do not decode.
    """
    return decode_document(data, tuple[InstancePlan, ...], "the tasks of a container")


def _decode(data: bytes, to: type[T], place: str) -> T:
    kind = _KINDS[to]
    try:
        envelope = decode_json(data, _Envelope)
        if envelope.kind == kind:
            check_format(envelope.format, _FORMAT, place, _in_words(kind))
            return decode_json(envelope.value, to)
    except msgspec.MsgspecError as error:
        msg = f"{place}: not a readable {_in_words(kind)} of {len(data)} bytes: {_lowered(str(error))}"
        raise StateError(msg) from error
    msg = f"{place}: holds a {_in_words(envelope.kind)}, not a {_in_words(kind)}"
    raise StateError(msg)


def _in_words(kind: str) -> str:
    return kind.replace("_", " ")[:40]


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
