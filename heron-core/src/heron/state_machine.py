"""A state machine is an enum and a table; this file runs the table.

An event that the table does not have is a typed error that names event, state and story, and changes nothing.
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

_STORY_LENGTH = 8  # enough to see how a process came into the state in which it met the illegal event


class StateMachine(Generic[S, E]):
    """Holds a state and moves it by a table ``{(state, event): next state}``."""

    __slots__ = ("_name", "_story", "_table", "state")

    def __init__(self, name: str, table: Mapping[tuple[S, E], S], start: S) -> None:
        self._name = name
        self._table = table
        self._story: deque[str] = deque(maxlen=_STORY_LENGTH)
        self.state = start

    def allows(self, event: E) -> bool:
        """Whether the table has this event in the current state."""
        return (self.state, event) in self._table

    def handle(self, event: E) -> S:
        """Moves to the next state and returns it.

        Raises:
            IllegalTransitionError: when the table has no such event here; the state is unchanged.
        """
        following = self._table.get((self.state, event))
        if following is None:
            story = " > ".join(self._story) or "none"
            msg = f"{self._name}: event {event.name} is not allowed in state {self.state.name}; before: {story}"
            raise IllegalTransitionError(msg)
        self._story.append(f"{self.state.name}+{event.name}")
        self.state = following
        return following
