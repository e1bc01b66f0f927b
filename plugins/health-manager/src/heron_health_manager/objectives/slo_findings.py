"""Objectives that are missed, that cost more than they need to, that contradict each other, or that nobody can meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from heron.spi.health import Diagnoser, Resolver
from heron.spi.health_values import (
    Action,
    ActionKind,
    Diagnosis,
    Expectation,
    Measurements,
    Subject,
    Symptom,
)
from heron_health_manager.objectives.cheapest_plan import PlanSearch, cheapest_plan
from heron_health_manager.objectives.grammar import Objectives, joint_objectives
from heron_health_manager.objectives.slo_model import Costs, SloModel, slo_model
from heron_health_manager.sizing.provisioning import explained_components
from heron_health_manager.sizing.sizing import Utilisation

__all__ = [
    "CONTRADICT",
    "MISSED",
    "OUT_OF_REACH",
    "TOO_EXPENSIVE",
    "UNMEASURED",
    "ObjectiveDiagnoser",
    "ObjectiveResolver",
]

MISSED, TOO_EXPENSIVE = "objective-missed", "costs-more-than-needed"
CONTRADICT, OUT_OF_REACH, UNMEASURED = "objectives-contradict", "objective-out-of-reach", "objective-not-measured"

_AIMED_LATENCY = 0.9  # of the limit: up to the limit itself nothing changes, so that noise moves no task

_SERVED = 0.9  # of what is wanted: rates are noisy
_SURE, _DOUBTFUL, _NOTE = 0.8, 0.4, 0.3


class _Terms:
    """What both parts need to search."""

    def __init__(self, objectives: tuple[str, ...], utilisation: Utilisation, costs: Costs) -> None:
        self._lines = objectives
        self._utilisation = utilisation
        self._costs = costs

    def _objectives(self, measurements: Measurements) -> Objectives:
        return joint_objectives(self._lines, measurements.shape.objectives)

    def _search(self, measurements: Measurements) -> tuple[SloModel, PlanSearch]:
        key = cheapest_plan, self._lines, self._utilisation, self._costs
        return measurements.kept(key, lambda: self._searched(measurements))

    def _searched(self, measurements: Measurements) -> tuple[SloModel, PlanSearch]:
        objectives = self._objectives(measurements)
        found = slo_model(measurements, objectives, self._utilisation, self._costs)
        if found.out_of_reach:
            return found, PlanSearch(None, f"throughput: {found.out_of_reach}")
        if (limit_s := objectives.latency_s) is not None:
            aimed = cheapest_plan(found.model, replace(objectives, latency_s=_AIMED_LATENCY * limit_s))
            if aimed.plan is not None:
                return found, aimed
        return found, cheapest_plan(found.model, objectives)


class ObjectiveDiagnoser(_Terms, Diagnoser):
    """Compares the present plan with the objectives, and with the cheapest plan that meets them."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        found, search = self._search(measurements)
        if not found.needs:
            return
        if found.unmeasured:
            yield Diagnosis(UNMEASURED, Subject(), _NOTE, found.unmeasured)
        if search.plan is None:
            yield Diagnosis(CONTRADICT if search.contradiction else OUT_OF_REACH, Subject(), _SURE, (search.reason,))
            return
        confidence = _DOUBTFUL if explained_components(symptoms, measurements) else _SURE
        if found.missed:
            yield Diagnosis(MISSED, Subject(), confidence, found.missed)
        elif found.model.tasks(search.plan) < found.model.tasks(found.present):
            yield Diagnosis(TOO_EXPENSIVE, Subject(), confidence, (_saving(found, search),))


class ObjectiveResolver(_Terms, Resolver):
    """Updates all components to the cheapest plan; where there is none, says what a person can change."""

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        if diagnosis.name in (CONTRADICT, OUT_OF_REACH):
            return Action(ActionKind.ADVISE, "relax one of the objectives, or make the code faster")
        if diagnosis.name == UNMEASURED:
            return Action(ActionKind.ADVISE, "measure it, or leave the objective out; the others are met without it")
        if diagnosis.name not in (MISSED, TOO_EXPENSIVE):
            return None
        found, search = self._search(measurements)
        changes = {name: tasks for name, tasks in (search.plan or {}).items() if tasks != found.present[name]}
        if search.plan is None:
            return None
        tasks, present = found.model.tasks(search.plan), found.containers
        containers = found.model.containers(tasks)
        spread = containers != present
        if not changes and not spread:
            return None
        words = [f"--component-parallelism {component}:{tasks}" for component, tasks in changes.items()]
        steps = [f"{component} {found.present[component]} -> {tasks}" for component, tasks in changes.items()]
        text = f"change the number of tasks: {', '.join(steps)}"
        if spread:
            words.append(f"--container-number {containers}")
        if not changes:
            text = f"change the number of containers: {present} -> {containers}"
        proof = "" if search.proved else " (a cheaper plan may exist)"
        return Action(
            ActionKind.UPDATE,
            f"{text}; the cost is {found.model.cost(tasks):g}{proof}",
            f"heron update {measurements.shape.name} {' '.join(words)}",
            parallelism=changes,
            before={component: found.present[component] for component in changes},
            containers=containers if spread else 0,
            containers_before=present if spread else 0,
            expected=_expectation(self._objectives(measurements), measurements),
        )


def _expectation(objectives: Objectives, measurements: Measurements) -> Expectation | None:
    """A source that does not serve its target will, within a tolerance; else the latency, if it is too long, will not.

    If neither is missed, the first source will go on as it does.
    """
    served = [
        Expectation("served-share", each.subject, at_least=_SERVED * objectives.share_of(each.value))
        for each in measurements.of("target-rate")
    ]
    late = [
        Expectation("complete-p99-s", each.subject, at_most=objectives.latency_s)
        for each in measurements.of("complete-p99-s")
        if objectives.latency_s is not None
    ]
    missed = (each for each in (*served, *late) if not _holds(each, measurements))
    return next(missed, served[0] if served else None)


def _holds(expected: Expectation, measurements: Measurements) -> bool:
    value = measurements.value(expected.measurement, expected.subject)
    return value is not None and expected.holds(value)


def _saving(found: SloModel, search: PlanSearch) -> str:
    model, now, then = found.model, found.model.tasks(found.present), found.model.tasks(search.plan or found.present)
    cheaper = f"{then:,} tasks meet the objectives too, and cost {model.cost(then):g}"
    return f"{now:,} tasks cost {found.cost:g}; {cheaper}"
