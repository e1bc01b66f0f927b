"""File names carry the state of a node, and the parser accepts exactly the names that the driver writes."""

from __future__ import annotations

import pytest

from heron_statemgr_hdfs.pointer import NO_NODE, Pointer, parse_pointer, parse_value_name, value_name

TOKEN, HOLDER = "0123456789abcdef", "fedcba9876543210"


def test_parse_reverses_name() -> None:
    """Version, value and holder are the same. The names are pinned: other versions of this package read them."""
    held = NO_NODE.followed_by(b"hello", TOKEN, HOLDER)
    assert held.name == f"node.1.{TOKEN}.5.3610a686.{HOLDER}"
    assert held.gone().name == "node.1.-.0.00000000.-"
    for pointer in (held, held.gone(), Pointer(10**17, TOKEN, 10**12, 2**32 - 1)):
        assert parse_pointer(pointer.name) == pointer
    assert parse_value_name(value_name(TOKEN)) == TOKEN


@pytest.mark.parametrize("name", ["", "node", "node.1", f"node.0.{TOKEN}.5.3610a686.-", "_SUCCESS", "node.1.-.0.0.-"])
def test_other_files_are_not_pointers(name: str) -> None:
    """People and tools leave files in folders."""
    assert parse_pointer(name) is None
    assert parse_value_name(name) is None


def test_a_value_fits_by_length_and_checksum() -> None:
    """A reader detects a value that was cut or edited."""
    pointer = NO_NODE.followed_by(b"hello", TOKEN, "")
    assert pointer.fits(b"hello")
    assert not pointer.fits(b"hell")
    assert not pointer.fits(b"jello")
