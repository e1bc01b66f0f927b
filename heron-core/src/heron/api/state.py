"""Components with state, and the keys and values that the engine keeps for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from heron.errors import UsageError

__all__ = ["CounterState", "HashMapState", "ITwoPhaseStatefulComponent", "State", "StatefulComponent"]


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

    With `EFFECTIVELY_ONCE` the state is saved with each checkpoint. In the other modes it lives in the memory of the
    task and is lost when its process restarts.
    """

    state_version: ClassVar[int] = 0
    """Change it when older state has another meaning; see `migrate`."""

    def init_state(self, state: State) -> None:
        """Receive the saved state, or an empty one. Called once, before `initialize`."""

    def pre_save(self, checkpoint_id: str) -> None:
        """Put into the state what the component holds elsewhere. Called before each checkpoint."""

    def migrate(self, old_version: int, state: State) -> State:
        """Return the state to use in place of one that another `state_version` of the component has saved.

        Raises:
            UsageError: always, unless a component overrides it.
        """
        msg = (
            f"{type(self).__name__} has state_version {self.state_version}, the checkpoint has {old_version}; override "
            "migrate, or start without the checkpoint"
        )
        raise UsageError(msg)


class ITwoPhaseStatefulComponent(StatefulComponent):
    """A component whose output outside of the topology is committed with each checkpoint, such as a sink.

    Checkpoint ids are decimal numbers as text; they grow. `pre_save` ends the present transaction, under the id of the
    checkpoint, and later output belongs to the next one. Source: Heron's ``ITwoPhaseStatefulComponent``.
    """

    def pre_restore(self, checkpoint_id: str) -> None:
        """Commit the transactions up to this checkpoint, and discard all others; "" is the state before the first one.

        Called after `initialize`, before the first tuple: at the start and after each restore.
        """

    def post_save(self, checkpoint_id: str) -> None:
        """Commit the transactions up to this checkpoint, which is complete.

        A checkpoint may be skipped when a later one is complete. An exception restarts the task, whose `pre_restore`
        gets the same id.
        """


class CounterState:
    """Counters by key, kept with the key group of the key."""

    def add(self, key: object, amount: int = 1) -> int:
        """Add to the counter of a key, and return its value."""
        raise NotImplementedError
