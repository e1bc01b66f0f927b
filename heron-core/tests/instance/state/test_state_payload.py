"""The state of `init_state` as bytes."""

from __future__ import annotations

import pickle

import pytest

from heron.api import HashMapState, StatefulComponent
from heron.errors import CheckpointError, SerializationError, UsageError
from heron.instance.state.state_payload import decode_operator_state, encode_operator_state


def test_operator_state_survives() -> None:
    """With the order of its keys."""
    state = HashMapState()
    state.put("b", [1])
    state.put(("a", 1), None)
    again = decode_operator_state(encode_operator_state(state, "task 1") or b"", "task 1")
    assert [(key, again.get(key)) for _, key in again.enumerate()] == [("b", [1]), (("a", 1), None)]


def test_an_empty_operator_state_has_no_payload() -> None:
    """Most components have none."""
    assert encode_operator_state(HashMapState(), "task 1") is None


def test_a_value_that_cannot_be_pickled_is_named() -> None:
    """The author must find it."""
    state = HashMapState()
    state.put("fine", 1)
    state.put("bad", iter(lambda: 0, 1))
    with pytest.raises(
        SerializationError,
        match=r"task 1: state: a key of type str or its value of type callable_iterator cannot be .*; store",
    ):
        encode_operator_state(state, "task 1")


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\x80\x05torn", "task 1: the saved state cannot be read"),
        (pickle.dumps({"format": 2, "operator": b""}), "task 1: has format 2"),
        (pickle.dumps({"format": 1, "states": {}}), "task 1: has no part 'operator'"),
    ],
)
def test_a_payload_that_cannot_be_read_is_refused(payload: bytes, message: str) -> None:
    """Torn, newer, or of a key group."""
    with pytest.raises(CheckpointError, match=message):
        decode_operator_state(payload, "task 1")


def test_a_state_of_another_version_is_refused_by_default() -> None:
    """With both versions."""
    with pytest.raises(
        UsageError,
        match="StatefulComponent: the saved state has state_version 3, StatefulComponent has 0; override migrate, or",
    ):
        StatefulComponent().migrate(3, HashMapState())
