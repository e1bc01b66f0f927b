"""A trial: rounds of a policy over a run, before and while a fault holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ground_truth.causes import Cause, Healthy
from ground_truth.sites import machine
from ground_truth.topology_run import Home, TopologyRun
from heron.clock import monotonic_s
from heron.spi.health import HealthPolicy
from heron.spi.health_values import Observation
from heron_health_manager.policy_round import Round, run_round

__all__ = ["REPORTED", "Alarm", "Said", "Trial", "Watch", "Watched", "try_cause", "watch"]

REPORTED = 0.5
"""The confidence from which a finding counts as a diagnosis. Those below say that something else explains more."""

_PERIOD_S = 1.5  # at most, between two observations
_LONGEST_BEFORE_S = 60.0  # the start of a topology, and what else the machine does, must have passed
_WITHIN_S = 30.0

Watch = Callable[[Observation, Round, float], None]
"""Sees each observation, the round that it ends, and the seconds since the fault began; negative before it."""

_Rounds = Iterator[tuple[Observation, Round]]


@dataclass(frozen=True, slots=True)
class Said:
    """What stood first after so many seconds of the fault: ``DIAGNOSIS SUBJECT``."""

    at_s: float
    first: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """A diagnosis without a fault, and the seconds since the start."""

    at_s: float
    diagnosis: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Watched:
    """A healthy load: for how long it was observed, the number of rounds, and the diagnoses, which are all wrong."""

    seconds: float
    rounds: int
    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome: the right diagnoses, what stood first over time (only changes), and all that was found at the end.

    `before` are diagnoses directly before the fault, of a machine that is too busy. `complete_s` is when all right
    diagnoses were found, with one of them first; None if that did not come.
    """

    cause: str
    right: tuple[str, ...]
    said: tuple[Said, ...]
    complete_s: float | None
    at_end: tuple[str, ...]
    before: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether the first diagnosis that came first is right, and the others followed in time."""
        return bool(self.said) and self.said[0].first in self.right and self.complete_s is not None


def try_cause(home: Home, cause: Cause, policy: HealthPolicy, see: Watch) -> Trial:
    """Run the load of a cause, inject the fault, and note what the policy finds.

    Raises:
        TruthError: when the fault cannot be injected, or the topology does not run.
    """
    with TopologyRun(home, cause.load, cause.site_of) as run:
        rounds = _rounds(run, policy)
        before = _before(rounds, cause.before_s, see)
        with cause.fault(run) as right:
            return _during(cause.name, rounds, right, before, see)


def watch(home: Home, healthy: Healthy, policy: HealthPolicy, seconds: float, see: Watch) -> Watched:
    """Run a healthy load for some seconds; note every diagnosis.

    Raises:
        TruthError: when the topology does not run.
    """
    alarms: list[Alarm] = []
    with TopologyRun(home, healthy.load, machine) as run:
        start_s, rounds, at_s = monotonic_s(), 0, 0.0
        for newest, found in _rounds(run, policy):
            at_s, rounds = monotonic_s() - start_s, rounds + 1
            see(newest, found, at_s)
            reported = (each.diagnosis for each in found.findings if each.diagnosis.confidence >= REPORTED)
            alarms += [Alarm(round(at_s, 1), f"{each.name} {each.subject}", each.evidence[0]) for each in reported]
            if at_s >= seconds:
                break
    return Watched(round(at_s, 1), rounds, tuple(alarms))


def _rounds(run: TopologyRun, policy: HealthPolicy) -> _Rounds:
    """A round for each observation, over the look-back window, as `heron health` makes one."""
    window: deque[Observation] = deque()
    look_back_s = policy.rhythm().look_back_s
    for observation in run.observations:
        window.append(observation)
        while observation.at_s - window[0].at_s > look_back_s:
            window.popleft()
        is_whole = observation.at_s - window[0].at_s > look_back_s - _PERIOD_S
        if is_whole and (found := run_round(policy, tuple(window))) is not None:
            yield observation, found


def _before(rounds: _Rounds, before_s: float, see: Watch) -> tuple[str, ...]:
    """Wait until the topology has been healthy for some seconds; return what was found in them if it never is."""
    start_s = healthy_s = monotonic_s()
    found: tuple[str, ...] = ()
    for newest, each in rounds:
        now_s, found = monotonic_s(), _reported(each)
        see(newest, each, now_s - start_s - _LONGEST_BEFORE_S)
        if found:
            healthy_s = now_s
        if now_s - healthy_s >= before_s or now_s - start_s >= _LONGEST_BEFORE_S:
            break
    return found


def _during(name: str, rounds: _Rounds, right: frozenset[str], before: tuple[str, ...], see: Watch) -> Trial:
    start_s, said = monotonic_s(), list[Said]()
    complete_s: float | None = None
    reported: tuple[str, ...] = ()
    for newest, each in rounds:
        at_s = monotonic_s() - start_s
        see(newest, each, at_s)
        reported = _reported(each)
        if reported and (not said or said[-1].first != reported[0]):
            said.append(Said(round(at_s, 1), reported[0]))
        if complete_s is None and _complete(reported, right):
            complete_s = round(at_s, 1)
        if at_s >= _WITHIN_S:
            break
    return Trial(name, tuple(sorted(right)), tuple(said), complete_s, reported, before)


def _complete(reported: tuple[str, ...], right: frozenset[str]) -> bool:
    """Whether a right diagnosis stands first, and the others of different names stand somewhere."""
    names = {each.partition(" ")[0] for each in right}
    found = {each.partition(" ")[0] for each in reported if each in right}
    return bool(reported) and reported[0] in right and found == names


def _reported(found: Round) -> tuple[str, ...]:
    return tuple(
        f"{each.diagnosis.name} {each.diagnosis.subject}"
        for each in found.findings
        if each.diagnosis.confidence >= REPORTED
    )
