"""State as bytes: the payloads that a checkpoint store keeps. Pure.

Payloads are pickles, and loading one executes what it says. They come from the checkpoint store of the topology only.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from heron.api.state import HashMapState, State
from heron.author_text import class_name, error_text, named_error
from heron.errors import CheckpointError, SerializationError

__all__ = ["SavedEntries", "decode_group", "decode_operator_state", "encode_group", "encode_operator_state"]

_FORMAT: Final = 1
_PROTOCOL: Final = 5


@dataclass(frozen=True, slots=True)
class SavedEntries:
    """The entries of one keyed state in one key group.

    `kind` is the kind of the state, `version` the `state_version` of the component that wrote the entries.
    `times_s` are the times of the last writes if entries expire, and `event_time_s` is the event time of the task.
    """

    kind: str
    version: int
    entries: dict[Any, Any]
    times_s: dict[object, float] | None = None
    event_time_s: float | None = None


def encode_group(place: str, states: Mapping[str, SavedEntries]) -> bytes:
    """The payload of a key group; `place` names it in errors.

    Raises:
        SerializationError: when a value cannot be pickled; names the state, the key and the type.
    """
    parts = {
        name: (saved.kind, saved.version, saved.event_time_s, _encode(f"{place}: keyed state {name!r}", saved))
        for name, saved in states.items()
    }
    return pickle.dumps({"format": _FORMAT, "states": parts}, _PROTOCOL)


def decode_group(place: str, payload: bytes) -> dict[str, SavedEntries]:
    """The inverse of `encode_group`.

    Raises:
        CheckpointError: when the payload is of a newer format, or cannot be read: it is torn, or the code of the
            topology lacks a class of a value.
    """
    states = _document(place, payload, "states")
    found = {}
    for name, (kind, version, event_time_s, data) in states.items():
        entries, times_s = _decode(f"{place}: keyed state {name!r}", data)
        found[name] = SavedEntries(kind, version, entries, times_s, event_time_s)
    return found


def encode_operator_state(state: State, place: str) -> bytes | None:
    """The payload of the state that `init_state` receives; None if it is empty.

    Raises:
        SerializationError: when a key or value cannot be pickled; names the key and the type.
    """
    entries = {key: state.get(key) for _, key in state.enumerate()}
    if not entries:
        return None
    return pickle.dumps(
        {"format": _FORMAT, "operator": _encode_entries(f"{place}: state", entries, entries)}, _PROTOCOL
    )


def decode_operator_state(payload: bytes, place: str) -> HashMapState:
    """The inverse of `encode_operator`.

    Raises:
        CheckpointError: as `decode_group`.
    """
    state = HashMapState()
    for key, value in _decode(f"{place}: state", _document(place, payload, "operator")).items():
        state.put(key, value)
    return state


def _encode(where: str, saved: SavedEntries) -> bytes:
    return _encode_entries(where, saved.entries, (saved.entries, saved.times_s))


def _encode_entries(where: str, entries: Mapping[object, object], whole: object) -> bytes:
    try:
        return pickle.dumps(whole, _PROTOCOL)
    except Exception as error:  # a class may raise anything when it is pickled
        for key, value in entries.items():
            _check_entry(where, key, value)
        msg = f"{where}: the entries cannot be pickled: {error_text(error)}; store values that pickle accepts"
        raise SerializationError(msg) from error


def _check_entry(where: str, key: object, value: object) -> None:
    try:
        pickle.dumps((key, value), _PROTOCOL)
    except Exception as error:
        msg = (
            f"{where}: a key of type {class_name(key)} or its value of type {class_name(value)} cannot be pickled: "
            f"{error_text(error)}; store a value that pickle accepts"
        )
        raise SerializationError(msg) from error


def _document(place: str, payload: bytes, part: str) -> Any:  # noqa: ANN401  # what this format's writer put in
    document = _decode(place, payload)
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        msg = f"{place}: {len(payload)} bytes are not a saved state; use another checkpoint"
        raise CheckpointError(msg)
    if document["format"] > _FORMAT:
        msg = (
            f"{place}: has format {document['format']}, this version of heron-core reads formats up to {_FORMAT}; "
            "upgrade heron-core"
        )
        raise CheckpointError(msg)
    if part not in document:
        msg = f"{place}: has no part {part!r}; use another checkpoint"
        raise CheckpointError(msg)
    return document[part]


def _decode(place: str, data: bytes) -> Any:  # noqa: ANN401  # what this format's writer put in
    try:
        return pickle.loads(data)  # noqa: S301  # written by the topology itself, see above
    except Exception as error:
        msg = (
            f"{place}: the saved state cannot be read: {named_error(error)}; the topology needs the classes "
            "that it had when it saved the state, or use another checkpoint"
        )
        raise CheckpointError(msg) from error
