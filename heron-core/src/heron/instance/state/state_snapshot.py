"""A snapshot of keyed state, which is taken in slices while the task goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from heron.clock import Clock
from heron.errors import SerializationError

__all__ = ["StateSnapshot"]

GroupPayload = tuple[int, bytes | None]


class StateSnapshot:
    """The changed groups at the instant of `KeyedStateStore.snapshot`, and their payloads.

    A payload of None says that the group is empty and was not empty in the last snapshot.
    """

    def __init__(
        self,
        groups: Iterable[int],
        encode: Callable[[int], bytes | None],
        mark_changed: Callable[[Iterable[int]], None],
        clock: Clock,
        on_encoded: Callable[[], None] | None = None,
    ) -> None:
        """Calls `on_encoded` when no group is to be encoded any more; perhaps several times."""
        self._pending = dict.fromkeys(groups)
        self._all = tuple(self._pending)
        self._encode = encode
        self._mark_changed = mark_changed
        self._clock = clock
        self._on_encoded = on_encoded
        self._ready: list[GroupPayload] = []
        self._failures: list[SerializationError] = []

    @property
    def done(self) -> bool:
        """Whether `next` has nothing more to return."""
        return not (self._pending or self._ready or self._failures)

    def next(self, budget_s: float) -> list[GroupPayload]:
        """The payloads of further groups, each once. Returns after about `budget_s` seconds, or one group if longer.

        Raises:
            SerializationError: when a value cannot be pickled. Its group stays changed, and the snapshot lacks it. The
                call may be repeated for the other groups.
        """
        end_s = self._clock.monotonic_s() + budget_s
        while self._pending:
            self.freeze(next(iter(self._pending)))
            if self._clock.monotonic_s() >= end_s:
                break
        self._release()
        if self._ready:
            found, self._ready = self._ready, []
            return found
        if self._failures:
            raise self._failures.pop(0)
        return []

    def freeze(self, group: int) -> None:
        """Pickles the group now if its turn is still to come, because it is about to change."""
        if group not in self._pending:
            return
        del self._pending[group]
        try:
            self._ready.append((group, self._encode(group)))
        except SerializationError as error:  # the write that needs the group now is not to blame
            self._failures.append(error)
            self._mark_changed((group,))

    def abandon(self) -> None:
        """Marks all groups of the snapshot as changed: nothing of it is kept. May be called again, also when done."""
        self._pending.clear()
        self._ready.clear()
        self._failures.clear()
        self._mark_changed(self._all)
        self._release()

    def _release(self) -> None:
        if not self._pending and self._on_encoded is not None:
            self._on_encoded()
            self._on_encoded = None
