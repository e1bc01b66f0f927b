"""The loop of the health manager: it observes, asks the policies that are due, and carries out what they decide.

All of its memory is its records. A failure of anything that it asks ends the round; it is named in the records as soon
as they can be written, and the next round tries again.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heron.clock import Clock
from heron.errors import HeronError, PluginError, StateConflictError
from heron.spi.health_section import HealthSection
from heron.spi.health_values import DecisionState, Observation
from heron_health_manager.diagnosing.policy_round import Round
from heron_health_manager.managing.acting import Attempt, Carries, attempt
from heron_health_manager.managing.agreement import Agreement
from heron_health_manager.managing.pace import Pace
from heron_health_manager.managing.pilot import Mode, next_step
from heron_health_manager.managing.policy_runner import PolicyRunner
from heron_health_manager.managing.record_book import KeptRecords, RecordBook
from heron_health_manager.managing.recovery import PlanFacts, is_prepared, recovered
from heron_health_manager.managing.safety import limits_of

__all__ = ["HealthManager", "Observed"]

_INTERRUPTED_S = 15.0  # between two calls of a process that lives, which may wait for processor time
_LONGEST_GAP = 3  # periods; after a longer time without an observation the window begins again

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen at one moment, and the facts of its plan."""

    observation: Observation
    plan: PlanFacts


class HealthManager:
    """Looks after one topology. `look` observes it; `carrier` is None in a process that may not change it."""

    def __init__(
        self,
        section: HealthSection,
        policies: Sequence[PolicyRunner],
        book: RecordBook,
        look: Callable[[], Observed],
        carrier: Carries | None,
        clock: Clock,
        pace: Pace,
    ) -> None:
        self._section = section
        self._policies = policies
        self._book = book
        self._look = look
        self._carrier = carrier
        self._clock = clock
        self._offset_s = clock.wall_s() - clock.monotonic_s()  # to the seconds of the records
        self._limits = limits_of(section)
        self._pace = pace
        self._window: list[Observation] = []
        self._since_s = 0.0  # when the first observation of the window was made
        self._prepared_since_s = float("inf")  # when the update of a decision was first seen waiting for its tasks
        self._ends: frozenset[float] = frozenset()  # of the actions that were carried out, as recorded
        self._due_s = {each.name: 0.0 for each in policies}
        self._agreements: dict[str, Agreement] = {}
        self._longest_s = max((each.rhythm.look_back_s for each in policies), default=0.0)
        self._problems: dict[str, list[str]] = {}  # of each policy, until its next round
        self._logged = ""

    def round(self) -> None:
        """Observe once, and do what follows. A failure is noted; the next round tries again."""
        problems: list[str] = []
        try:
            self._observe_and_act()
        except StateConflictError:
            _log.info("somebody else has written the records meanwhile; this round is left out")
            return
        except HeronError as error:
            problems.append(str(error))
        self._note("; ".join([*problems, *itertools.chain.from_iterable(self._problems.values())]))

    def _observe_and_act(self) -> None:
        self._drop_old()
        observed = self._look()
        now_s = observed.observation.at_s
        self._keep(observed.observation)
        kept = self._recover(observed)
        self._set_clock(kept)
        self._begin_after_actions(observed.observation, kept)
        for policy in self._policies:
            window = self._window_of(policy)
            if now_s < self._due_s[policy.name] or not window:
                continue
            self._due_s[policy.name] = now_s + policy.rhythm.period_s
            problems = self._problems[policy.name] = []
            try:
                found = policy.run(window)
            except PluginError as error:
                problems.append(str(error))
                continue
            if found is None:
                continue
            problems += [f"policy {policy.name!r}: {each}" for each in found.failed]
            found = self._agreements[policy.name].filtered(found, now_s)
            if self._follow(kept, found, policy.name, problems):
                return  # what was observed is of the time before
            kept = self._book.read()

    def _recover(self, observed: Observed) -> KeptRecords:
        """Read the records, and correct those whose state the plan contradicts."""
        kept = self._book.read()
        self._give_up_interrupted(kept, observed)
        changed = tuple(recovered(kept.records.decisions, observed.plan, self._now_s()))
        for each in changed:
            _log.warning("decision %d is %s: %s", each.number, each.state.value, each.reason)
        return self._book.write(kept, kept.records.with_decisions(*changed)) if changed else kept

    def _give_up_interrupted(self, kept: KeptRecords, observed: Observed) -> None:
        """Withdraw an update whose process died before it asked for containers: a health manager, or a command."""
        if self._carrier is None:
            return
        now_s = self._clock.monotonic_s()
        waits = is_prepared(kept.records.decisions, observed.plan)
        self._prepared_since_s = min(self._prepared_since_s, now_s) if waits else float("inf")
        if now_s - self._prepared_since_s >= _INTERRUPTED_S:
            self._carrier.give_up(observed.plan.containers)

    def _window_of(self, policy: PolicyRunner) -> list[Observation]:
        """The observations of the look-back window; none until the present plan has filled it."""
        look_back_s = policy.rhythm.look_back_s
        if not self._window or self._window[-1].at_s - self._since_s < look_back_s:
            return []
        return _within(self._window, look_back_s)

    def _drop_old(self) -> None:
        """Drop what the next observation pushes out of the window, before it comes: of 10,000 tasks each has 30 MB."""
        now_s = self._clock.monotonic_s()
        older = [each for each in self._window[:-1] if now_s - each.at_s <= self._longest_s]
        self._window = [*older, *self._window[-1:]]

    def _keep(self, newest: Observation) -> None:
        """Add an observation to those of the present plan.

        What was seen of another plan, or before nothing was seen for a look-back window, cannot be compared with it.
        """
        longest_s = max(self._longest_s, _LONGEST_GAP * self._pace.period_s)
        last = self._window[-1] if self._window else newest
        if newest.shape.changing or last.shape.version != newest.shape.version or newest.at_s - last.at_s > longest_s:
            self._window = []
        if newest.shape.changing:
            return
        if not self._window:
            self._since_s = newest.at_s
            self._agreements = {each.name: Agreement(each.rhythm.look_back_s) for each in self._policies}
        self._window = _within([*self._window, newest], self._longest_s)

    def _begin_after_actions(self, newest: Observation, kept: KeptRecords) -> None:
        """Forget what was seen before an action: it says nothing about its effect. Another process may have acted."""
        times = (each.carried_out_at_s for each in kept.records.decisions)
        ends = frozenset(each for each in times if each is not None)
        if ends - self._ends:
            self._window = []
            self._keep(newest)
        self._ends = ends

    def _follow(self, kept: KeptRecords, found: Round, policy: str, problems: list[str]) -> bool:
        """Record what follows from a round, and carry it out if this process may; return whether it tried to.

        An action that a bound or another plan does not permit leaves the turn to the next finding.
        """
        step = next_step(kept.records.decisions, found, policy, self._mode(kept), self._now_s(), self._limits)
        if step.action is None or self._carrier is None:
            if step.records:
                self._book.write(kept, kept.records.with_decisions(*step.records))
            return False
        how, why = attempt(self._carrier, self._book, kept, step.records, step.action, self._limits, self._now_s)
        if how is not Attempt.CARRIED_OUT:
            _log.warning("%s: %s: %s", step.action.text, how.value, why)
            if how in {Attempt.FAILED, Attempt.UNKNOWN}:
                problems.append(why)
        if how in {Attempt.CARRIED_OUT, Attempt.FAILED, Attempt.UNKNOWN}:
            return True
        others = tuple(each for each in found.findings if each.action != step.action)
        if len(others) == len(found.findings):  # it undoes a decision
            return False
        return self._follow(self._book.read(), replace(found, findings=others), policy, problems)

    def _set_clock(self, kept: KeptRecords) -> None:
        """Follow the wall clock, with which commands write records, unless an effect is awaited."""
        if all(each.state is not DecisionState.STARTED for each in kept.records.decisions):
            self._offset_s = self._clock.wall_s() - self._clock.monotonic_s()

    def _now_s(self) -> float:
        """Seconds of the records. When the wall clock jumps, no time has passed for an effect."""
        return self._offset_s + self._clock.monotonic_s()

    def _mode(self, kept: KeptRecords) -> Mode:
        if self._carrier is None or self._section.mode != "act":
            return Mode.ADVISE
        return Mode.PAUSED if kept.records.paused else Mode.ACT

    def _note(self, problem: str) -> None:
        """Write what keeps the health manager from its work, and its mode, if they have changed."""
        if self._section.mode == "act" and self._carrier is None:
            missing = "mode `act` needs the control key, and this process has the read-only key: it only advises"
            problem = f"{missing}; {problem}" if problem else missing
        if problem and problem != self._logged:
            _log.warning("%s", problem)
        self._logged = problem
        mode = "act" if self._section.mode == "act" and self._carrier is not None else "advise"
        try:
            self._book.change(lambda records: replace(records, mode=mode, problem=problem))
        except HeronError as error:
            _log.debug("the records cannot be written now: %s", error)


def _within(window: Sequence[Observation], seconds: float) -> list[Observation]:
    """The observations of the last seconds. Of a topology that is observed seldom, they are the last two."""
    within = [each for each in window if window[-1].at_s - each.at_s <= seconds]
    return within if len(within) > 1 else list(window[-2:])
