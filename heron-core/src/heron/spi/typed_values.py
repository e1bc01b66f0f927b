"""Values of structs and dataclasses from plain data, for any thread.

msgspec describes a class when it decodes one for the first time. Another thread that decodes the same class meanwhile
reads half of that description, which crashes the process. So one thread at a time describes. A class that is described
already costs a microsecond.
"""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec

from heron.errors import RemoteProtocolError

__all__ = ["convert_value", "decode_document", "decode_json", "json_decoder"]

T = TypeVar("T")

_describing = threading.Lock()


def decode_json(data: bytes, to: type[T]) -> T:
    """Return the value of a type that a JSON document holds.

    Raises:
        msgspec.MsgspecError: when the document is no JSON, has a text that is not UTF-8, is nested too deeply, or holds
            another value.
    """
    try:
        return json_decoder(to).decode(data)
    except (UnicodeDecodeError, RecursionError) as error:  # msgspec passes these two on
        msg = str(error)
        raise msgspec.DecodeError(msg) from error


def decode_document(data: bytes, to: type[T], what: str) -> T:
    """As `decode_json`, for a document that another process sent.

    Raises:
        RemoteProtocolError: when the bytes do not decode; `what` names the document.
    """
    try:
        return decode_json(data, to)
    except msgspec.MsgspecError as error:
        msg = f"{what} of {len(data)} bytes cannot be read: {error}"
        raise RemoteProtocolError(msg) from error


def convert_value(value: object, to: type[T]) -> T:
    """Return the value of a type that plain data (mappings, sequences, numbers, texts) holds.

    Raises:
        msgspec.ValidationError: when it holds another value.
    """
    json_decoder(to)
    return msgspec.convert(value, to)


def json_decoder(to: type[T]) -> msgspec.json.Decoder[T]:
    """Return a decoder for many documents. It also raises UnicodeDecodeError and RecursionError."""
    with _describing:
        return msgspec.json.Decoder(to)
