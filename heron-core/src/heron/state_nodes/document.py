"""The rules that all state nodes share: a node holds one JSON object with the number of its format.

- A writer always writes `format`. A document without it has format 1.
- The number grows when readers of the former format would misread the new one. A reader refuses a newer format: it
  raises `NewerFormatError` and reads nothing else of the document.
- Within a format, fields may be added. A reader ignores fields that it does not know.
- A process that changes a part of a node keeps the fields that it does not know (`merged`). A process that writes a
  node whole drops them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec

from heron.errors import NewerFormatError, StateError
from heron.spi.statemgr import NodeKind
from heron.spi.typed_values import decode_json

__all__ = ["Format", "check_format", "decode_node", "encode_node", "merged", "node_name"]

T = TypeVar("T")

Format = Annotated[int, msgspec.Meta(ge=1)]


class _Head(msgspec.Struct):
    format: Format = 1


def node_name(kind: NodeKind, topology: str) -> str:
    """A node as messages name it: its kind and its topology, as in the path of a file."""
    return f"node {kind.value}/{topology}"


def encode_node(value: object, newest: int) -> bytes:
    """The fields of a struct or dataclass as a document of that format."""
    return msgspec.json.encode({"format": newest, **msgspec.to_builtins(value)})


def decode_node(data: bytes, to: type[T], newest: int, node: tuple[NodeKind, str], what: str, topology: str = "") -> T:
    """The inverse of `encode_node`; `node` is the kind and the name, `what` names the document in messages.

    `topology` is the topology of the node, if that is not its name.

    Raises:
        NewerFormatError: when the document has a format above `newest`.
        StateError: when `data` is not such a document; the message does not show what it holds.
    """
    name, topology = node_name(*node), topology or node[1]
    try:
        check_format(decode_json(data, _Head).format, newest, name, what)
        return decode_json(data, to)
    except msgspec.MsgspecError as error:
        msg = (
            f"{name}: the {what} of topology {topology!r} cannot be read: {error}; the node was damaged or changed by "
            f"hand; `heron kill {topology}` removes it"
        )
        raise StateError(msg) from error


def check_format(found: int, newest: int, place: str, what: str) -> None:
    """Refuses a document of a newer format.

    Raises:
        NewerFormatError: names the place, both formats and the remedy.
    """
    if found > newest:
        msg = (
            f"{place}: the {what} has format {found}, and this version of heron-core reads formats up to {newest}; "
            "upgrade heron-core to the version that wrote it"
        )
        raise NewerFormatError(msg)


def merged(data: bytes, changes: Mapping[str, object]) -> bytes:
    """The document with some of its fields replaced and all others as they were; `data` was decoded before."""
    document = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**document, **changes})
