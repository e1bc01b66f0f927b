"""A node's file is read only if it is complete and unchanged."""

from __future__ import annotations

import pytest

from heron.errors import StateError
from heron_statemgr_localfs.record import HEADER_LIMIT_BYTES, Record, decode, decode_header, encode

_RECORD = Record(version=7, value=b'{"a": 1}\n', holder="0123abcd")


def test_decode_reverses_encode() -> None:
    """Value, version and holder are the same."""
    assert decode(encode(_RECORD), "x") == _RECORD
    assert decode(encode(Record(1, b"")), "x") == Record(1, b"")


def test_the_header_is_one_line_of_text() -> None:
    """The bytes are pinned, because other versions of this package read them."""
    assert encode(_RECORD) == b'heron-node 1 version=7 holder=0123abcd size=9 crc32=5c47a1fa\n{"a": 1}\n'
    longest = encode(Record(10**18, b"", "f" * 64))
    assert len(longest) <= HEADER_LIMIT_BYTES
    assert decode_header(longest[:HEADER_LIMIT_BYTES], "x").version == 10**18


def test_a_file_cut_anywhere_is_refused_and_named() -> None:
    """A full disk or a power failure leaves the beginning of a file."""
    data = encode(_RECORD)
    for length in range(len(data)):
        with pytest.raises(StateError, match=r"/state/t: .* cut"):
            decode(data[:length], "/state/t")


def test_a_flipped_bit_anywhere_is_refused() -> None:
    """This includes the header, where it must not be read as another version."""
    for position in range(len(encode(_RECORD))):
        data = bytearray(encode(_RECORD))
        data[position] ^= 0x40
        with pytest.raises(StateError):
            pytest.fail(f"byte {position} changed: read as {decode(bytes(data), '/state/t')}")


def test_the_error_for_another_format_names_the_package() -> None:
    """Another version of the package may have written the state folder."""
    with pytest.raises(StateError, match=r"heron-statemgr-localfs wrote node format 2; this version reads format 1"):
        decode(encode(_RECORD).replace(b"heron-node 1", b"heron-node 2"), "/state/t")
