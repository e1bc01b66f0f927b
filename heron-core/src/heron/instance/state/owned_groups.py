"""The key groups that a task owns, and the group of each key. Belongs to the task thread."""

from __future__ import annotations

from collections.abc import Callable

from heron.api.definition import ComponentDefinition, GroupingKind
from heron.author_text import class_name
from heron.errors import EmitError, UsageError
from heron.planner.key_encoding import encode_key
from heron.planner.key_group import key_group

__all__ = ["OwnedGroups", "has_single_keys", "receives_by_key"]

_BY_KEY = (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY)


def has_single_keys(definition: ComponentDefinition) -> bool:
    """Whether each grouping of the component names one field, so that a key which is a tuple is one value."""
    groupings = [each.grouping for each in definition.inputs]
    return all(len(each.fields) == 1 for each in groupings if each.kind in _BY_KEY)


def receives_by_key(definition: ComponentDefinition) -> bool:
    """Whether an input of the component has a fields grouping.

    Without checkpoints, tuples that were routed under another plan reach such a task during an update: with keys that
    it owns no longer, or not yet. Their state belongs to it all the same. Only an aligned restore excludes that.
    """
    return any(each.grouping.kind is GroupingKind.FIELDS for each in definition.inputs)


class OwnedGroups:
    """Places keys in key groups as routes do, and knows which groups belong to the task."""

    def __init__(self, owner: str, groups: int, on_changed: Callable[[frozenset[int]], None], *, single: bool) -> None:
        """The task owns all of the topology's `groups` until `set`. `owner` names the task in errors.

        Calls `on_changed` with other groups before it answers for them. `single`: see `has_single_keys`.
        """
        self._owner = owner
        self._count = groups
        self._on_changed = on_changed
        self._single = single
        self._strict = True
        self._find: Callable[[], frozenset[int]] | None = None
        self._groups: frozenset[int] | None = None

    def set(self, find: Callable[[], frozenset[int]], *, strict: bool) -> None:
        """Replaces the groups. `find` is called when they are needed. If not `strict`, `group_of` gives others too."""
        self._strict = strict
        self._find = find

    def update(self) -> None:
        """Finds the groups that were set."""
        find, self._find = self._find, None
        before = self._groups
        if find is not None:
            self._groups = find()
        if self._groups is not None and self._groups != before:
            self._on_changed(self._groups)

    def has(self, group: int) -> bool:
        """Whether the task owns this group."""
        if self._find is not None:
            self.update()
        return self._groups is None or group in self._groups

    def has_key(self, key: object) -> bool:
        """Whether the task owns the group of this key; raises UsageError if no key can have this value."""
        return self.has(self._place("owns", key))

    def group_of(self, name: str, key: object) -> int:
        """The group of a key of the state `name`.

        Raises:
            UsageError: when no key can have this value, or the task does not own the group.
        """
        group = self._place(name, key)
        if not self.has(group) and self._strict:
            msg = (
                f"{self._owner}: keyed state {name!r}: a key of type {class_name(key)} is in key group {group} of "
                f"{self._count}, which this task does not own; use the key of a fields grouping, and group "
                "every input by that key"
            )
            raise UsageError(msg)
        return group

    def encoded(self, key: object) -> bytes:
        """The canonical bytes of a key."""
        return encode_key(key if type(key) is tuple and not self._single else (key,))

    def _place(self, name: str, key: object) -> int:
        values = key if type(key) is tuple and not self._single else (key,)
        try:
            return key_group(values, self._count)
        except EmitError as error:
            msg = f"{self._owner}: keyed state {name!r}: {error}"
            raise UsageError(msg) from error
