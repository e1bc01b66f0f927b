"""Brings saved keyed state to the version of the component."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heron.api.state import StatefulComponent
from heron.errors import UsageError
from heron.instance.state.state_payload import SavedEntries

__all__ = ["StateMigration"]


class StateMigration:
    """The `state_version` of a component, and its `migrate_keyed`."""

    def __init__(self, owner: str) -> None:
        """`owner` names the task in errors."""
        self._owner = owner
        self._migrate: Callable[[str, int, object, Any], Any] | None = None
        self.version = 0

    def serve(self, component: object) -> None:
        """Uses the version and the method of this component."""
        if isinstance(component, StatefulComponent):
            self.version, self._migrate = component.state_version, component.migrate_keyed
        else:
            self.version, self._migrate = 0, None

    def migrated(self, name: str, saved: SavedEntries) -> SavedEntries:
        """The entries of the state `name` in the version of the component; the same object if they have it.

        Raises:
            UsageError: when the component cannot migrate them.
        """
        if saved.version == self.version:
            return saved
        if self._migrate is None:
            msg = (
                f"{self._owner}: keyed state {name!r} was saved with state_version {saved.version}, the component has "
                f"none; derive it from StatefulComponent and override migrate_keyed"
            )
            raise UsageError(msg)
        entries = {key: self._migrate(name, saved.version, key, value) for key, value in saved.entries.items()}
        return SavedEntries(saved.kind, self.version, entries, saved.times_s, saved.event_time_s)
