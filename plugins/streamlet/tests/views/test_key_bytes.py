"""Keys of views: readers get back the keys that pipelines wrote."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_streamlet.views.key_bytes import key_bytes, key_of

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, places=3),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
)
KEYS = st.recursive(PLAIN, lambda keys: st.lists(keys, max_size=3).map(tuple), max_leaves=6)


@given(key=KEYS)
def test_a_key_comes_back(key: object) -> None:
    """Equal keys have equal bytes, so what comes back is equal, though it may have another type of number."""
    assert key_of(key_bytes(key)) == key


@pytest.mark.parametrize(
    "key", ["", "é", 1, -(2**80), 0.5, Decimal("0.1"), None, (1, ("a", None)), date(2026, 1, 2), UUID(int=5), b"\0"]
)
def test_types_come_back(key: object) -> None:
    assert type(key_of(key_bytes(key))) is type(key)


def test_times_keep_their_zone() -> None:
    time = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert key_of(key_bytes(time)) == time
    assert key_of(key_bytes(time.replace(tzinfo=None))) == time.replace(tzinfo=None)


@pytest.mark.parametrize(
    "data", [b"", b"x", b"i\0", key_bytes("a") + b"n", b"s\xff\0\0\0\0\0\0\0a", b"(\1\0\0\0\0\0\0\0"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="key"):
        key_of(data)
