"""Components with state, and the keys and values that the engine keeps for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from heron.errors import UsageError

__all__ = ["HashMapState", "ITwoPhaseStatefulComponent", "State", "StatefulComponent"]


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

    If the topology takes checkpoints, the engine saves the state at each of them, and `init_state` receives the state
    of the checkpoint that the task continues from. It takes them with ``topology.reliability.mode: EFFECTIVELY_ONCE``,
    or with ``ATLEAST_ONCE`` and ``topology.stateful.checkpoint.interval.seconds``. In other topologies the state is in
    the memory of the task: `init_state` receives an empty one, and a restart of the process loses it.
    """

    state_version: ClassVar[int] = 0
    """The version of what the component saves. Raise it when new code cannot use what older code saved."""

    def init_state(self, state: State) -> None:
        """Receive the saved state, or an empty one. Called once, before `initialize`."""

    def pre_save(self, checkpoint_id: str) -> None:
        """Put into the state what the component holds elsewhere. Called before each checkpoint.

        Args:
            checkpoint_id: a decimal number; numbers ascend.
        """

    def migrate(self, old_version: int, state: State) -> State:
        """Return the state for this version of the component, made of a saved state of another version.

        Called before `init_state` when the saved state has another `state_version`; override it to accept such a state.

        Raises:
            UsageError: always, unless it is overridden; the topology does not start then.
        """
        raise UsageError(_refusal(self, "migrate", "state", old_version))

    def migrate_keyed(self, name: str, old_version: int, key: object, value: Any) -> Any:  # noqa: ANN401  # the author's
        """Return the new value of a key of the keyed state `name`; see `migrate`.

        Called for each key when the component asks for the state. The value of a list state is a list, that of a map
        state a dict, and so must be the result.
        """
        raise UsageError(_refusal(self, "migrate_keyed", f"keyed state {name!r}", old_version))


class ITwoPhaseStatefulComponent(StatefulComponent, ABC):
    """A stateful component that writes to another system, exactly once: it commits when a checkpoint is complete.

    `pre_save` prepares what was written since the last checkpoint, so that it survives a crash and can be committed.
    Checkpoint ids are decimal numbers as text, and ascend; compare them as integers. Source: Heron's
    ``ITwoPhaseStatefulComponent``.
    """

    @abstractmethod
    def pre_restore(self, checkpoint_id: str) -> None:
        """Commit what was prepared up to this checkpoint, and discard what is newer.

        Called after `initialize` and before the first tuple, at the start and after each restore. ``""`` is the state
        before the first checkpoint: then everything is discarded. What was prepared may be of a former process, so it
        must be found in the other system. A task that an update removes gets the call too, and no tuple after it.
        """

    @abstractmethod
    def post_save(self, checkpoint_id: str) -> None:
        """The checkpoint is complete: commit everything that was prepared up to it.

        It may be called again for the same id. An id may be skipped when a newer checkpoint is complete, so a commit
        must include all earlier ids. An exception restarts the task, whose `pre_restore` gets the same id.
        """


def _refusal(component: StatefulComponent, method: str, what: str, old_version: int) -> str:
    name = type(component).__name__
    return (
        f"{name}: the saved {what} has state_version {old_version}, {name} has {component.state_version}; "
        f"override {method}, or start without the checkpoint"
    )
