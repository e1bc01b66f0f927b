"""Components with state, and the keys and values that the engine keeps for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

__all__ = ["HashMapState", "State", "StatefulComponent"]


class State(ABC):
    """Keys and values. A stateful component reads it in `init_state` and may change it at any time."""

    @abstractmethod
    def put(self, key: object, value: object) -> None:
        """Set the value of a key."""

    @abstractmethod
    def get(self, key: object) -> Any:  # noqa: ANN401  # whatever the author put in
        """Return the value of a key, or None when the key is absent."""

    @abstractmethod
    def enumerate(self) -> Iterator[tuple[int, object]]:
        """Yield ``(number, key)`` for each key; numbers begin at 0."""

    @abstractmethod
    def clear(self) -> None:
        """Remove every key."""


class HashMapState(State):
    """A state in memory. Keys must be hashable; `enumerate` yields them in the order of their first `put`."""

    def __init__(self) -> None:
        self._values: dict[object, object] = {}

    def put(self, key: object, value: object) -> None:
        """Set the value of a key."""
        self._values[key] = value

    def get(self, key: object) -> Any:  # noqa: ANN401  # whatever the author put in
        """Return the value of a key, or None when the key is absent."""
        return self._values.get(key)

    def enumerate(self) -> Iterator[tuple[int, object]]:
        """Yield ``(number, key)`` for each key; numbers begin at 0."""
        return iter(enumerate(self._values))

    def clear(self) -> None:
        """Remove every key."""
        self._values.clear()

    def __repr__(self) -> str:
        return f"HashMapState({self._values!r})"


class StatefulComponent:
    """A second base class for a spout or bolt that keeps state.

    Limitation: there are no checkpoints yet. State lives in the memory of the task and is lost when its process
    restarts.
    """

    def init_state(self, state: State) -> None:
        """Receive the saved state, or an empty one. Called once, before `initialize`."""

    def pre_save(self, checkpoint_id: str) -> None:
        """Put into the state what the component holds elsewhere. Called before each checkpoint."""
