"""The entries of a call as lists, and as columns."""

from __future__ import annotations

from heron_connector_scribe.entries import Entries
from heron_connector_scribe.entry_columns import columns_of

_MIXED = [("web", 0, b"a"), ("web", 1, b""), ("ads", 2, b"\xff")]


def test_a_part_has_the_same_entries() -> None:
    """A call that comes again goes on behind what a checkpoint has."""
    entries = Entries.of(_MIXED)
    assert list(entries[1:]) == _MIXED[1:]
    assert (len(entries), entries[2], list(entries)) == (3, _MIXED[2], _MIXED)


def test_columns_have_the_same_types_with_one_category_and_with_several() -> None:
    """A stream has the types of its first batch; a dictionary counts as its values."""
    mixed, one = columns_of(Entries.of(_MIXED)), columns_of(Entries.of(_MIXED[:1]))
    assert mixed.schema.types == one.schema.types
    assert [tuple(row.values()) for row in mixed.to_pylist()] == _MIXED
    assert [tuple(row.values()) for row in one.to_pylist()] == _MIXED[:1]
    assert mixed.schema.names == ["category", "partition", "message"]
