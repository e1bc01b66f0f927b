"""What people read of a round, and that a part of a third party cannot end it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from heron.spi.health import Detector, Diagnoser, Resolver, Sensor
from heron.spi.health_values import Action, Diagnosis, Measurement, Measurements, Observation, Symptom
from heron_health_manager.diagnosing.diagnosed import diagnosed
from heron_health_manager.diagnosing.health_text import health_text
from heron_health_manager.diagnosing.policy_round import Round, run_round
from heron_health_manager.ds2_policy import Ds2Options, Ds2Policy
from heron_testing.contracts.health import busy_topology

UNDER = """topology busy, observed for 15 s: 1 finding

under-provisioned: work (confidence 80%)
  work has to do 2,000 tuples/s with 4 tasks, 500 each: 200% of what they can do
  to do: change the number of tasks: work 4 -> 8
    heron update busy --component-parallelism work:8"""


def found(window: Sequence[Observation], policy: Ds2Policy | None = None) -> Round:
    result = run_round(policy or Ds2Policy(Ds2Options(wanted_utilisation=1.0, most_utilisation=1.0)), window)
    assert result is not None
    return result


def test_a_finding_has_its_numbers_and_its_command() -> None:
    """A person can check the reason, and copy the remedy."""
    assert health_text(found(busy_topology()), 15.0) == UNDER


def test_a_healthy_topology_says_how_busy_it_is() -> None:
    """People want to know how much is left."""
    healthy = [
        replace(each, samples=tuple(s for s in each.samples if s.component == "source"), culprits=frozenset())
        for each in busy_topology()
    ]
    text = "topology busy, observed for 2 s: healthy; its busiest task is source/1, 1% of the time"
    assert health_text(found(healthy), 2.0) == text


def test_a_topology_without_metrics_is_not_called_healthy() -> None:
    """Nothing is known of it."""
    silent = [replace(each, samples=(), culprits=frozenset()) for each in busy_topology()]
    text = "topology busy, observed for 2 s: nothing was measured; its tasks have sent no metrics"
    assert health_text(found(silent), 2.0) == text


def test_a_plan_in_change_is_not_judged() -> None:
    """Its rates belong to two plans."""
    changing = [replace(each, shape=replace(each.shape, changing=True)) for each in busy_topology()]
    assert "an update is under way" in health_text(found(changing), 2.0)


class Raising(Sensor, Detector, Diagnoser, Resolver):
    """Raises wherever it is called."""

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        msg = "no such column"
        raise LookupError(msg)

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`: raises after its first symptom, as a generator may."""
        yield from ()
        msg = "no such symptom"
        raise LookupError(msg)

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterable[Diagnosis]:
        """`Diagnoser.diagnose`."""
        msg = "no such cause"
        raise LookupError(msg)

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        msg = "no such remedy"
        raise LookupError(msg)


class PartlyBroken(Ds2Policy):
    """`ds2` with a broken part of each kind in front of the others."""

    def sensors(self) -> Sequence[Sensor]:
        """`HealthPolicy.sensors`."""
        return Raising(), *super().sensors()

    def detectors(self) -> Sequence[Detector]:
        """`HealthPolicy.detectors`."""
        return Raising(), *super().detectors()

    def diagnosers(self) -> Sequence[Diagnoser]:
        """`HealthPolicy.diagnosers`."""
        return Raising(), *super().diagnosers()

    def resolvers(self) -> Sequence[Resolver]:
        """`HealthPolicy.resolvers`."""
        return Raising(), *super().resolvers()


def test_a_part_that_raises_is_named_and_the_others_go_on() -> None:
    """The parts of third parties must not hide what is known."""
    result = found(busy_topology(), PartlyBroken(Ds2Options(wanted_utilisation=1.0, most_utilisation=1.0)))
    texts = ("column", "symptom", "cause", "remedy")
    assert result.failed == tuple(f"part Raising failed: LookupError: no such {each}" for each in texts)
    shown = health_text(result, 15.0)
    assert shown.startswith(UNDER)
    assert "left out: part Raising failed: LookupError: no such remedy" in shown


class Counting(Diagnoser):
    """Counts its calls."""

    calls = 0

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterable[Diagnosis]:
        """`Diagnoser.diagnose`."""
        self.calls += 1
        return [Diagnosis("counted", each.subject, 0.1, ("it is there",)) for each in symptoms]


class Building(Diagnoser):
    """Builds on what another diagnoser finds."""

    def __init__(self, cause: Diagnoser) -> None:
        self._cause = cause

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterable[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for each in diagnosed(self._cause, symptoms, measurements):
            yield Diagnosis("built", each.subject, 0.1, each.evidence)


class Sharing(Ds2Policy):
    """Two diagnosers, of which the second one needs the first one."""

    counting = Counting()

    def diagnosers(self) -> Sequence[Diagnoser]:
        """`HealthPolicy.diagnosers`."""
        return self.counting, Building(self.counting), Building(self.counting)


def test_a_diagnoser_is_asked_once_in_a_round() -> None:
    """Others build on its diagnoses; the next round asks again."""
    policy = Sharing(Ds2Options())
    for rounds in (1, 2):
        names = {each.diagnosis.name for each in found(busy_topology(), policy).findings}
        assert names == {"counted", "built"}
        assert policy.counting.calls == rounds
