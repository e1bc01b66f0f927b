"""RecordIO is cut as the master meant it, however the network cuts the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_scheduler_mesos.record_io import MOST_BYTES, Records


@settings(max_examples=30)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.data())
def test_records_survive_any_chunks(written: list[bytes], data: st.DataObject) -> None:
    """Proxies may change the boundaries of chunks."""
    stream = b"".join(str(len(each)).encode() + b"\n" + each for each in written)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    records = Records()
    chunks = (stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True))
    assert [each for chunk in chunks for each in records.feed(chunk)] == written


@pytest.mark.parametrize("bad", [b"<html>\n", b"-1\n", str(MOST_BYTES + 1).encode() + b"\n", b"9" * 30])
def test_other_bytes_are_an_error(bad: bytes) -> None:
    """A proxy that answers with a page must not be waited for."""
    with pytest.raises(ValueError, match="length of an event"):
        list(Records().feed(bad))
