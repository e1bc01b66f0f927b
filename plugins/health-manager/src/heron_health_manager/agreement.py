"""An update waits until the rounds of a third of the look-back window want the same, and at most for a whole one. Pure.

When the load has just changed, the look-back window has rates from before and after, and each round wants a little more
than the last one. Waiting until the window has only new rates makes one step of several.
"""

from __future__ import annotations

from dataclasses import replace

from heron.spi.health_values import Action, ActionKind
from heron_health_manager.policy_round import Round

__all__ = ["Agreement"]

_Wanted = frozenset[tuple[str, int]]


class Agreement:
    """The updates that one policy has wanted without a break, each since when. After a restart it begins again."""

    def __init__(self, look_back_s: float) -> None:
        self._least_s = look_back_s / 3
        self._longest_s = look_back_s
        self._since_s: dict[_Wanted, float] = {}
        self._first_s = 0.0

    def filtered(self, found: Round, now_s: float) -> Round:
        """Return the round without the updates that wait; `now_s` is monotonic seconds."""
        wanted = {_wanted(each.action) for each in found.findings if _is_update(each.action)}
        if not self._since_s:
            self._first_s = now_s
        self._since_s = {each: self._since_s.get(each, now_s) for each in wanted}
        if now_s - self._first_s >= self._longest_s:
            return found
        agreed = {each for each, since_s in self._since_s.items() if now_s - since_s >= self._least_s}
        kept = (each for each in found.findings if not _is_update(each.action) or _wanted(each.action) in agreed)
        return replace(found, findings=tuple(kept))


def _is_update(action: Action | None) -> bool:
    return action is not None and action.kind is ActionKind.UPDATE


def _wanted(action: Action | None) -> _Wanted:
    return frozenset(action.parallelism.items()) if action is not None else frozenset()
