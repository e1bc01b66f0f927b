"""Decodes Protobuf messages in the wire format of a schema registry. The message class is the author's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from heron.errors import ConnectorError
from heron_connector_kafka.schema_registry import body_of

__all__ = ["ProtobufDecoder"]

M = TypeVar("M", bound=Message)

_MOST_BYTES = 5  # of a number


class ProtobufDecoder(Generic[M]):
    """A function of a record's key or value; None, as of a tombstone, stays None.

    Protobuf reads messages of other versions of a class by itself. So it needs the place of the message in its file,
    which the wire format has, and does not ask the registry for the schema.

    Args:
        message: the class that protoc has made of the ``.proto`` file of the registry.
    """

    def __init__(self, message: type[M]) -> None:
        self._message = message
        self._place = _place_of(message.DESCRIPTOR)

    def __call__(self, data: bytes | None) -> M | None:
        """The message.

        Raises:
            ConnectorError: when the bytes are not of this format, or of another message of the file.
        """
        if data is None:
            return None
        number, body = body_of(data)
        place, begin = _read_place(body)
        if place != self._place:
            msg = (
                f"schema id {number}: the message is number {list(place)} of its .proto file, and "
                f"{self._message.DESCRIPTOR.full_name} is number {list(self._place)}"
            )
            raise ConnectorError(msg)
        try:
            return self._message.FromString(bytes(body[begin:]))
        except DecodeError as error:
            msg = f"schema id {number}: {len(data)} bytes are not a {self._message.DESCRIPTOR.full_name}: {error}"
            raise ConnectorError(msg) from error


def _place_of(descriptor: Any) -> tuple[int, ...]:  # noqa: ANN401  # of one of two implementations
    """The indexes of a message in its file, from the outermost."""
    outer = descriptor.containing_type
    if outer is None:
        return (list(descriptor.file.message_types_by_name).index(descriptor.name),)
    return (*_place_of(outer), [each.name for each in outer.nested_types].index(descriptor.name))


def _read_place(body: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """The indexes at the begin, and where the message begins. A zero is short for the first message of the file."""
    count, at = _varint(body, 0)
    if count == 0:
        return (0,), at
    found: list[int] = []
    while len(found) < count:
        index, at = _varint(body, at)
        found.append(index)
    return tuple(found), at


def _varint(body: Sequence[int], at: int) -> tuple[int, int]:
    """A number in zigzag form, and where the next one begins."""
    value = 0
    for shift, byte in enumerate(body[at : at + _MOST_BYTES]):
        value |= (byte & 0x7F) << (7 * shift)
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at + shift + 1
    msg = "the bytes behind the schema's id do not say which message of the .proto file follows"
    raise ConnectorError(msg)
