"""An update waits until the rounds of a third of the look-back window want the same, and at most for a whole one. Pure.

When the load has just changed, the look-back window has rates from before and after, and each round wants a little more
than the last one. Waiting until the window has only new rates makes one step of several.
"""

from __future__ import annotations

from dataclasses import replace

from heron.spi.health_values import Action, ActionKind, Subject
from heron_health_manager.diagnosing.policy_round import Finding, Round

__all__ = ["Agreement"]

_Wanted = frozenset[tuple[str, int]]
_Cause = tuple[str, Subject]


class Agreement:
    """The updates that one policy has wanted without a break, each since when. After a restart it begins again."""

    def __init__(self, look_back_s: float) -> None:
        self._least_s = look_back_s / 3
        self._longest_s = look_back_s
        self._since_s: dict[_Wanted, float] = {}
        self._apart_s: dict[_Cause, float] = {}  # since when the rounds want different updates against a cause

    def filtered(self, found: Round, now_s: float) -> Round:
        """Return the round without the updates that wait; `now_s` is monotonic seconds."""
        updates = {_cause(each): _wanted(each.action) for each in found.findings if _is_update(each.action)}
        self._since_s = {each: self._since_s.get(each, now_s) for each in updates.values()}
        agreed = {each for each, since_s in self._since_s.items() if now_s - since_s >= self._least_s}
        self._apart_s = {
            cause: now_s if wanted in agreed else self._apart_s.get(cause, now_s) for cause, wanted in updates.items()
        }
        passed = {
            cause
            for cause, wanted in updates.items()
            if wanted in agreed or now_s - self._apart_s[cause] >= self._longest_s
        }
        kept = (each for each in found.findings if not _is_update(each.action) or _cause(each) in passed)
        return replace(found, findings=tuple(kept))


def _cause(finding: Finding) -> _Cause:
    return finding.diagnosis.name, finding.diagnosis.subject


def _is_update(action: Action | None) -> bool:
    return action is not None and action.kind is ActionKind.UPDATE


def _wanted(action: Action | None) -> _Wanted:
    return frozenset(action.parallelism.items()) if action is not None else frozenset()
