"""Messages as bytes: JSON with a line `end`, as Storm has it, or MessagePack, which pystorm can read too.

A child may print where only messages belong: pystorm lets the author's `print` through. What stands in front of a
message is therefore returned as text, and no message is lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgpack
import msgspec

from heron.author_text import short_text
from heron_runtime_multilang.child_error import ChildProtocolError
from heron_runtime_multilang.child_message import ChildMessage

__all__ = ["ChildOutput", "Framing", "JsonFraming", "MsgpackFraming", "RowWriter", "framing_of"]

ChildOutput: TypeAlias = ChildMessage | str
"""A message, or text that the child has printed on the channel."""

RowWriter: TypeAlias = Callable[[int, Sequence[object]], bytes]
"""Encodes a tuple of one source, from its id and its values."""

_END = b"\nend\n"
_MOST_TRIES = 1_000  # braces in the text in front of a message; each may begin it
_LONGEST_TEXT = 64 * 1024  # of the text in front of a message
_NOT_JSON = (b"NaN", b"Infinity")


class Framing(ABC):
    """Encodes messages for a child, and decodes those of the child as they arrive."""

    @abstractmethod
    def encode(self, message: Mapping[str, object] | Sequence[int]) -> bytes:
        """Return a message, or the reply to an emit, as bytes."""

    @abstractmethod
    def row_writer(self, component: str, stream: str, task: int) -> RowWriter:
        """Return the encoder for tuples of a source."""

    @abstractmethod
    def feed(self, data: bytes) -> list[ChildOutput]:
        """Return what is complete now that `data` has arrived.

        Raises:
            ChildProtocolError: when a message cannot be read, or is larger than the limit.
        """

    def end(self) -> list[ChildOutput]:
        """Return the text behind the last message, now that the child has ended."""
        return []

    @property
    @abstractmethod
    def unfinished_bytes(self) -> int:
        """The size of the message that has arrived in part."""


class JsonFraming(Framing):
    """A JSON document, and a line with the word `end`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(ChildMessage).decode

    def encode(self, message: Mapping[str, object] | Sequence[int]) -> bytes:
        """`Framing.encode`."""
        return self._encode(message) + _END

    def row_writer(self, component: str, stream: str, task: int) -> RowWriter:
        """`Framing.row_writer`."""
        source = self._encode({"comp": component, "stream": stream, "task": task})[1:-1]
        middle, encode = b'",%s,"tuple":' % source, self._encode

        def write(number: int, values: Sequence[object]) -> bytes:
            return b'{"id":"%d%s%s}\nend\n' % (number, middle, encode(values))

        return write

    def feed(self, data: bytes) -> list[ChildOutput]:
        """`Framing.feed`."""
        rest = self._rest
        known_bytes = max(0, len(rest) - len(_END))
        rest += data
        last = rest.rfind(_END, known_bytes)
        outputs: list[ChildOutput] = []
        if last >= 0:
            whole = bytes(rest[:last])
            del rest[: last + len(_END)]
            decode = self._decode
            for document in whole.split(_END):
                try:
                    outputs.append(decode(document))
                except msgspec.DecodeError as error:
                    outputs += self._read_behind_text(document, error)
        if len(rest) > self._most_bytes:
            raise _too_large(len(rest), self._most_bytes)
        return outputs

    def end(self) -> list[ChildOutput]:
        """`Framing.end`; a message that was begun is no text."""
        place = self._rest.find(b'{"')
        text = self._rest[: place if place >= 0 else len(self._rest)]
        del self._rest[: len(text)]
        printed = text[:_LONGEST_TEXT].decode(errors="replace").strip()
        return [printed] if printed else []

    @property
    def unfinished_bytes(self) -> int:
        """`Framing.unfinished_bytes`."""
        return len(self._rest)

    def _read_behind_text(self, document: bytes, error: msgspec.DecodeError) -> list[ChildOutput]:
        """Decode the longest end of a document that is a message; what is in front of it is text."""
        place = document.find(b"{", 1)
        for _ in range(_MOST_TRIES):
            if not 0 < place <= _LONGEST_TEXT:
                break
            try:
                return [document[:place].decode(errors="replace"), self._decode(document[place:])]
            except msgspec.DecodeError:
                place = document.find(b"{", place + 1)
        hint = "; NaN and infinite numbers are not JSON" if any(each in document for each in _NOT_JSON) else ""
        msg = f"the message {short_text(document)} cannot be read: {error}{hint}"
        raise ChildProtocolError(msg) from error


class MsgpackFraming(Framing):
    """MessagePack, in which each value says where it ends."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=most_bytes)
        self._fed_bytes = 0
        self._encode = msgspec.msgpack.Encoder().encode

    def encode(self, message: Mapping[str, object] | Sequence[int]) -> bytes:
        """`Framing.encode`."""
        return self._encode(message)

    def row_writer(self, component: str, stream: str, task: int) -> RowWriter:
        """`Framing.row_writer`."""
        encode, row = self._encode, {"id": "", "comp": component, "stream": stream, "task": task, "tuple": ()}

        def write(number: int, values: Sequence[object]) -> bytes:
            return encode({**row, "id": str(number), "tuple": values})

        return write

    def feed(self, data: bytes) -> list[ChildOutput]:
        """`Framing.feed`."""
        outputs: list[ChildOutput] = []
        text = bytearray()
        try:
            self._unpacker.feed(data)
            self._fed_bytes += len(data)
            for value in self._unpacker:
                if type(value) is int and 0 <= value < 0x80:  # a printed character; a bool is none
                    text.append(value)
                    continue
                if text:
                    outputs.append(text.decode())
                    text.clear()
                outputs.append(msgspec.convert(value, ChildMessage))
        except msgpack.BufferFull as error:
            raise _too_large(self.unfinished_bytes + len(data), self._most_bytes) from error
        except (ValueError, TypeError, msgpack.UnpackException) as error:  # TypeError: a map is the key of a map
            msg = f"a message cannot be read: {error or type(error).__name__}"
            raise ChildProtocolError(msg) from error
        if text:
            outputs.append(text.decode())
        return outputs

    @property
    def unfinished_bytes(self) -> int:
        """`Framing.unfinished_bytes`."""
        return self._fed_bytes - int(self._unpacker.tell())


def framing_of(name: str, most_bytes: int) -> Framing:
    """Return a new framing by its name."""
    return MsgpackFraming(most_bytes) if name == "msgpack" else JsonFraming(most_bytes)


def _too_large(size: int, most_bytes: int) -> ChildProtocolError:
    return ChildProtocolError(
        f"a message has {size} bytes so far, the limit is {most_bytes} bytes (message_bytes); send smaller messages"
    )
