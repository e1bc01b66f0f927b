"""An update waits until two rounds in a row want the same, and at most for a look-back window. Pure.

When the load has just changed, the look-back window has rates from before and after, and each round would want a little
more than the last one. Waiting until the window has only new rates makes one step of several.
"""

from __future__ import annotations

from dataclasses import replace

from heron.spi.health_values import Action, ActionKind
from heron_health_manager.policy_round import Round

__all__ = ["Agreement"]

_Wanted = frozenset[tuple[str, int]]


class Agreement:
    """The updates that one policy wanted in its last round. After a restart one more round is needed."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._before: frozenset[_Wanted] = frozenset()
        self._since_s = 0.0

    def filtered(self, found: Round, now_s: float) -> Round:
        """Return the round without the updates that wait; `now_s` is monotonic seconds."""
        before, since_s = self._before, self._since_s
        self._before = frozenset(_wanted(each.action) for each in found.findings if _is_update(each.action))
        if not before:
            self._since_s = since_s = now_s
        if now_s - since_s >= self._longest_s:
            return found
        kept = (each for each in found.findings if not _is_update(each.action) or _wanted(each.action) in before)
        return replace(found, findings=tuple(kept))


def _is_update(action: Action | None) -> bool:
    return action is not None and action.kind is ActionKind.UPDATE


def _wanted(action: Action | None) -> _Wanted:
    return frozenset(action.parallelism.items()) if action is not None else frozenset()
