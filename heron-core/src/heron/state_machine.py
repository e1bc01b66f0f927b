"""A state machine: an enum of states and a table of transitions.

An event that the table does not have raises an error that names the event, the state and the last transitions. The
state does not change.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Mapping
from typing import Generic, TypeVar

from heron.errors import IllegalTransitionError

__all__ = ["StateMachine"]

S = TypeVar("S", bound=enum.Enum)
E = TypeVar("E", bound=enum.Enum)

_HISTORY_LENGTH = 8  # enough to see how the machine came into its state


class StateMachine(Generic[S, E]):
    """Holds a state and changes it by a table ``{(state, event): next state}``."""

    __slots__ = ("_history", "_name", "_table", "state")

    def __init__(self, name: str, table: Mapping[tuple[S, E], S], start: S) -> None:
        self._name = name
        self._table = table
        self._history: deque[str] = deque(maxlen=_HISTORY_LENGTH)
        self.state = start

    def allows(self, event: E) -> bool:
        """Return whether the table has this event in the current state."""
        return (self.state, event) in self._table

    def handle(self, event: E) -> S:
        """Change to the next state and return it.

        Raises:
            IllegalTransitionError: when the table does not have the event in this state; the state is unchanged.
        """
        following = self._table.get((self.state, event))
        if following is None:
            history = " > ".join(self._history) or "none"
            msg = f"{self._name}: event {event.name} is not allowed in state {self.state.name}; before: {history}"
            raise IllegalTransitionError(msg)
        self._history.append(f"{self.state.name}+{event.name}")
        self.state = following
        return following
