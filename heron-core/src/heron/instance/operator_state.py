"""The state of `init_state` as bytes."""

from __future__ import annotations

import pickle

from heron.api.state import HashMapState, State

__all__ = ["decode_operator_state", "encode_operator_state"]


def encode_operator_state(state: State) -> bytes | None:
    """The keys and values; None for an empty state."""
    values = [(key, state.get(key)) for _, key in state.enumerate()]
    return pickle.dumps(values) if values else None


def decode_operator_state(data: bytes, place: str) -> State:
    """The inverse of `encode_operator_state`; `place` names in errors where the bytes come from."""
    del place
    state = HashMapState()
    for key, value in pickle.loads(data):  # noqa: S301  # what this topology has saved
        state.put(key, value)
    return state
