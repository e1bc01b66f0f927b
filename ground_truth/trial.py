"""A trial: rounds of a policy over a run, before and while a fault holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ground_truth.causes import Cause, Healthy
from ground_truth.errors import TruthError
from ground_truth.sites import machine
from ground_truth.topology_run import Home, TopologyRun
from heron.clock import monotonic_s
from heron.spi.health import HealthPolicy
from heron.spi.health_values import Diagnosis, Observation
from heron_health_manager.diagnosing.policy_round import Round, run_round
from heron_health_manager.diagnosing.thresholds import REPORTED

__all__ = [
    "Alarm",
    "Said",
    "TimedWindow",
    "Trial",
    "Watch",
    "Watched",
    "judge",
    "judge_healthy",
    "try_cause",
    "watch",
    "windows_of",
]

_PERIOD_S = 1.5  # at most, between two observations
_LONGEST_BEFORE_S = 60.0  # the start of a topology, and what else the machine does, must have passed
_WITHIN_S = 30.0
_PRESSED = "host-pressure-share"

Window = tuple[Observation, ...]

TimedWindow = tuple[float, Window]
"""A window, and the seconds since the fault began, or since the start of a healthy run."""

Watch = Callable[[float, Window], None]
"""Sees each window as it is judged; before a fault its seconds are negative."""


@dataclass(frozen=True, slots=True)
class Said:
    """The first diagnosis, as ``DIAGNOSIS SUBJECT``, and the seconds from the fault until then."""

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
    """A healthy load: for how long it was observed, the number of rounds, and the diagnoses, which are all wrong.

    `most_pressed` is the largest share of time in a window in which threads of the host waited for a processor.
    """

    seconds: float
    rounds: int
    alarms: tuple[Alarm, ...]
    most_pressed: float = 0.0


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome: the right diagnoses, what stood first over time (only changes), and all that was found at the end.

    `complete_s` is when all right diagnoses were found, with one of them first; None if that did not come, or
    there is none.
    """

    cause: str
    right: tuple[str, ...]
    said: tuple[Said, ...]
    complete_s: float | None
    at_end: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether the first diagnosis that came first is right, and the others followed in time.

        Without a right diagnosis, each one is wrong.
        """
        if not self.right:
            return not self.said
        return bool(self.said) and self.said[0].first in self.right and self.complete_s is not None


def try_cause(home: Home, cause: Cause, policy: HealthPolicy, see: Watch) -> Trial:
    """Run the load of a cause, inject the fault, and note what the policy finds.

    Raises:
        TruthError: when the fault cannot be injected, the topology does not run, or it is ill before the fault.
    """
    with TopologyRun(home, cause.load, cause.site_of) as run:
        windows = windows_of(run.observations, policy)
        if before := _before(windows, policy, cause.before_s, see):
            msg = f"the machine was too busy, so there was a diagnosis before the fault: {', '.join(before)}"
            raise TruthError(msg)
        with cause.fault(run) as right:
            return judge(cause.name, right, policy, _timed(windows, see))


def watch(home: Home, healthy: Healthy, policy: HealthPolicy, seconds: float, see: Watch) -> Watched:
    """Run a healthy load for some seconds; note every diagnosis.

    Raises:
        TruthError: when the topology does not run.
    """
    with TopologyRun(home, healthy.load, machine) as run:
        return judge_healthy(policy, _timed(windows_of(run.observations, policy), see), seconds)


def judge(name: str, right: frozenset[str], policy: HealthPolicy, windows: Iterable[TimedWindow]) -> Trial:
    """Return what a policy finds in the windows since a fault began."""
    said: list[Said] = []
    complete_s: float | None = None
    reported: tuple[str, ...] = ()
    for at_s, window in windows:
        reported = _reported(policy, window)
        if reported and (not said or said[-1].first != reported[0]):
            said.append(Said(round(at_s, 1), reported[0]))
        if right and complete_s is None and _complete(reported, right):
            complete_s = round(at_s, 1)
        if at_s >= _WITHIN_S:
            break
    return Trial(name, tuple(sorted(right)), tuple(said), complete_s, reported)


def judge_healthy(policy: HealthPolicy, windows: Iterable[TimedWindow], seconds: float) -> Watched:
    """Return what a policy finds in the windows of a healthy run."""
    alarms: list[Alarm] = []
    rounds, at_s, most_pressed = 0, 0.0, 0.0
    for at_s, window in windows:
        found, rounds = run_round(policy, window), rounds + 1
        alarms += [Alarm(round(at_s, 1), f"{each.name} {each.subject}", each.evidence[0]) for each in _counted(found)]
        pressed = (each.value for each in found.measurements.of(_PRESSED)) if found is not None else iter(())
        most_pressed = max(most_pressed, *pressed, 0.0)
        if at_s >= seconds:
            break
    return Watched(round(at_s, 1), rounds, tuple(alarms), round(most_pressed, 2))


def windows_of(observations: Iterable[Observation], policy: HealthPolicy) -> Iterator[Window]:
    """The look-back window of each observation, as soon as it is whole, as `heron health` has it."""
    window: deque[Observation] = deque()
    look_back_s = policy.rhythm().look_back_s
    for observation in observations:
        window.append(observation)
        while observation.at_s - window[0].at_s > look_back_s:
            window.popleft()
        if observation.at_s - window[0].at_s > look_back_s - _PERIOD_S:
            yield tuple(window)


def _timed(windows: Iterator[Window], see: Watch) -> Iterator[TimedWindow]:
    start_s = monotonic_s()
    for window in windows:
        at_s = monotonic_s() - start_s
        see(at_s, window)
        yield at_s, window


def _before(windows: Iterator[Window], policy: HealthPolicy, before_s: float, see: Watch) -> tuple[str, ...]:
    """Wait until the topology has been healthy for some seconds; return what was found in them if it never is."""
    found = _reported(policy, next(windows))
    start_s = healthy_s = monotonic_s()  # when the first window was whole
    for window in windows:
        now_s, found = monotonic_s(), _reported(policy, window)
        see(now_s - start_s - _LONGEST_BEFORE_S, window)
        if found:
            healthy_s = now_s
        if now_s - healthy_s >= before_s or now_s - start_s >= _LONGEST_BEFORE_S:
            break
    return found


def _complete(reported: tuple[str, ...], right: frozenset[str]) -> bool:
    """Whether a right diagnosis stands first, and the others of different names stand somewhere."""
    names = {each.partition(" ")[0] for each in right}
    found = {each.partition(" ")[0] for each in reported if each in right}
    return bool(reported) and reported[0] in right and found == names


def _reported(policy: HealthPolicy, window: Window) -> tuple[str, ...]:
    return tuple(f"{each.name} {each.subject}" for each in _counted(run_round(policy, window)))


def _counted(found: Round | None) -> list[Diagnosis]:
    findings = found.findings if found is not None else ()
    return [each.diagnosis for each in findings if each.diagnosis.confidence >= REPORTED]
