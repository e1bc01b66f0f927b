"""Records in the files that wait for their checkpoint: each is its length and its encoding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from heron.errors import ConnectorError

__all__ = ["Outgoing", "append", "records_of"]

_LENGTH_BYTES = 4
_encode = msgspec.msgpack.Encoder().encode


class Outgoing(msgspec.Struct, array_like=True, frozen=True):
    """A record to be written."""

    key: bytes | None
    value: bytes | None


def append(file: IO[bytes], record: Outgoing) -> None:
    """Write a record to a file that is open."""
    body = _encode(record)
    file.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)


def records_of(path: Path) -> Iterator[Outgoing]:
    """What a complete file has.

    Raises:
        ConnectorError: when it is cut.
    """
    decode = msgspec.msgpack.Decoder(Outgoing).decode
    with path.open("rb") as file:
        while head := file.read(_LENGTH_BYTES):
            body = file.read(int.from_bytes(head, "big"))
            if len(head) < _LENGTH_BYTES or len(body) < int.from_bytes(head, "big"):
                msg = f"{path}: the file is cut; its disk has lost what was written to it"
                raise ConnectorError(msg)
            yield decode(body)
