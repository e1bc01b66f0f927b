"""The state of a stateful component: keys and values that the engine keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

__all__ = ["HashMapState", "State"]


class State(ABC):
    """Keys and values. A stateful component reads it in `init_state` and changes it at any time."""

    @abstractmethod
    def put(self, key: object, value: object) -> None:
        """Sets the value of a key."""

    @abstractmethod
    def get(self, key: object) -> Any:  # noqa: ANN401  # whatever the author put in
        """The value of a key, or None when it has none."""

    @abstractmethod
    def enumerate(self) -> Iterator[tuple[int, object]]:
        """``(number, key)`` for each key, as heronpy's."""

    @abstractmethod
    def clear(self) -> None:
        """Forgets every key."""


class HashMapState(State):
    """A state in memory."""

    def __init__(self) -> None:
        self._values: dict[object, object] = {}

    def put(self, key: object, value: object) -> None:
        """Sets the value of a key."""
        self._values[key] = value

    def get(self, key: object) -> Any:  # noqa: ANN401  # whatever the author put in
        """The value of a key, or None when it has none."""
        return self._values.get(key)

    def enumerate(self) -> Iterator[tuple[int, object]]:
        """``(number, key)`` for each key, in the order in which they were first put."""
        return iter(enumerate(self._values))

    def clear(self) -> None:
        """Forgets every key."""
        self._values.clear()

    def __repr__(self) -> str:
        return f"HashMapState({self._values!r})"
