"""Checks a payload of another process: nothing in it leads outside of its bytes, or takes far more memory.

Arrow trusts the offsets of a batch, and reads whatever memory they name. Its own full check also looks at each
character of a text, and takes 50 ns for a row. Here texts are checked as bytes, which takes 0.6 ns: a text that is not
UTF-8 is an error of the value, and leads nowhere.
"""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from heron.errors import SerializationError

__all__ = ["check_offsets", "check_sizes"]

_LEAST_BYTES = 64 << 20
_RATIO = 64

_CONTINUED = b"\xff\xff\xff\xff"
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3  # fields of the table Message
_DATA = 1  # of DictionaryBatch
_BUFFERS, _COMPRESSION = 2, 3  # of RecordBatch
_INT, _LONG = struct.Struct("<i"), struct.Struct("<q")
_SHORT, _UINT = struct.Struct("<H"), struct.Struct("<I")


def _most_uncompressed_bytes(payload_bytes: int) -> int:
    """The most bytes that a payload of this size may take when its buffers are no longer compressed."""
    return max(_LEAST_BYTES, _RATIO * payload_bytes)


def check_sizes(payload: bytes | memoryview) -> None:
    """Check what the compressed buffers of a stream say they take, before any memory is taken for them.

    Raises:
        SerializationError: when it is more than 64 MiB and 64 times its size, or the messages do not fit the payload.
    """
    try:
        total = _uncompressed(memoryview(payload))
    except (struct.error, IndexError, ValueError) as error:
        msg = f"the payload is not an Arrow IPC stream: {error}"
        raise SerializationError(msg) from error
    most = _most_uncompressed_bytes(len(payload))
    if total > most:
        msg = f"a payload of {len(payload)} bytes takes {total} bytes without its compression, more than {most} bytes"
        raise SerializationError(msg)


def check_offsets(batch: pa.RecordBatch) -> None:
    """Check that offsets, lengths and codes stay inside of their buffers; `batch.validate()` has passed.

    Raises:
        pyarrow.ArrowInvalid: when one does not.
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        try:
            _check(column)
        except pa.ArrowException:  # its text may have a value
            msg = f"column {field.name!r} of type {field.type} has values, offsets or codes that it cannot have"
            raise pa.ArrowInvalid(msg) from None


def _check(array: pa.Array) -> None:
    kind = array.type
    if pt.is_primitive(kind) or pt.is_null(kind):
        return
    if pt.is_string(kind):
        array.view(pa.binary()).validate(full=True)
    elif pt.is_large_string(kind):
        array.view(pa.large_binary()).validate(full=True)
    elif isinstance(array, pa.DictionaryArray):
        codes = pc.min_max(array.indices).as_py()
        if codes["min"] is not None and not 0 <= codes["min"] <= codes["max"] < len(array.dictionary):
            raise pa.ArrowInvalid
        _check(array.dictionary)
    else:
        array.validate(full=True)


def _uncompressed(data: memoryview) -> int:
    total = at = 0
    while data[at : at + 4] == _CONTINUED:
        (size,) = _INT.unpack_from(data, at + 4)
        if size <= 0:
            break
        start = at + 8
        message = start + _UINT.unpack_from(data, start)[0]
        kind, header = _field(data, message, _HEADER_TYPE), _field(data, message, _HEADER)
        length = _field(data, message, _BODY_LENGTH)
        body = start + size
        if kind and header and data[kind] in (_DICTIONARY_BATCH, _RECORD_BATCH):
            batch = header + _UINT.unpack_from(data, header)[0]
            if data[kind] == _DICTIONARY_BATCH:
                inner = _field(data, batch, _DATA)
                batch = inner + _UINT.unpack_from(data, inner)[0]
            if _field(data, batch, _COMPRESSION):
                total += _of_buffers(data, batch, body)
        at = body + (_LONG.unpack_from(data, length)[0] if length else 0)
        if at <= start or at > len(data):
            msg = f"a message ends at byte {at} of {len(data)}"
            raise ValueError(msg)
    return total


def _of_buffers(data: memoryview, batch: int, body: int) -> int:
    """The sum of the sizes in front of the compressed buffers of a batch; -1 there says: not compressed."""
    total, place = 0, _field(data, batch, _BUFFERS)
    if not place:
        return 0
    vector = place + _UINT.unpack_from(data, place)[0]
    (count,) = _UINT.unpack_from(data, vector)
    if vector + 4 + 16 * count > len(data):
        msg = f"{count} buffers do not fit"
        raise ValueError(msg)
    for number in range(count):
        offset, length = struct.unpack_from("<qq", data, vector + 4 + 16 * number)
        if length >= _LONG.size and offset >= 0:
            total += max(0, _LONG.unpack_from(data, body + offset)[0])
    return total


def _field(data: memoryview, table: int, number: int) -> int:
    """The place of a field of a flatbuffers table; 0 when the table does not have it."""
    vtable = table - _INT.unpack_from(data, table)[0]
    if vtable < 0 or 4 + 2 * number + 2 > _SHORT.unpack_from(data, vtable)[0]:
        return 0
    offset = _SHORT.unpack_from(data, vtable + 4 + 2 * number)[0]
    return table + offset if offset else 0
