"""Too few or too many tasks: the diagnoses and the action that follow from the arithmetic of DS2."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
from heron_cli.view.text import counted
from heron_health_manager.diagnosing.detectors import symptoms_of
from heron_health_manager.diagnosing.diagnosed import diagnosed
from heron_health_manager.diagnosing.diagnosers import CAUSES, EXPLAINED, TOO_FEW
from heron_health_manager.sizing.sizing import ComponentRates, Need, Sizing, Utilisation, size

__all__ = [
    "OVER",
    "UNDER",
    "Provisioning",
    "UpdateResolver",
    "explained_components",
    "load_text",
    "rates_of",
    "sizing_of",
]

UNDER, OVER = "under-provisioned", "over-provisioned"

_HELD = 0.05  # of the time
_SURE, _DOUBTFUL = 0.8, 0.4  # doubtful where something else explains why the component is slow


def sizing_of(measurements: Measurements, utilisation: Utilisation) -> Sizing:
    """What each component of the topology needs, by what was measured."""
    return measurements.kept(
        (size, utilisation), lambda: size(measurements.shape, *rates_of(measurements), utilisation)
    )


def rates_of(measurements: Measurements) -> tuple[dict[str, ComponentRates], dict[str, float]]:
    """The measured rates by component, and the target rate of each source, in tuples/s."""
    rates, targets = {}, {}
    for component in measurements.shape.components:
        subject = Subject(component.name)
        of_tasks = measurements.of_tasks("true-rate", component.name)
        backlog = measurements.value("backlog", subject)
        ratios = {each.detail: each.value for each in measurements.of("ratio") if each.subject == subject}
        if of_tasks or (ratios and not component.inputs):  # the tuples of a spout may cost it no time
            mean = sum(of_tasks.values()) / len(of_tasks) if of_tasks else math.inf
            rates[component.name] = ComponentRates(mean, ratios, scales=bool(component.inputs) or backlog is not None)
        if (target := measurements.value("target-rate", subject)) is not None:
            targets[component.name] = target
    return rates, targets


class Provisioning(Diagnoser):
    """A component that needs another number of tasks, or more than it may have."""

    def __init__(self, utilisation: Utilisation) -> None:
        self._utilisation = utilisation

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        sizing = sizing_of(measurements, self._utilisation)
        explained, saturated = explained_components(symptoms, measurements), _saturated(symptoms, measurements)
        for need in sizing.needs:
            name = UNDER if need.needed > need.parallelism or need.limit else OVER
            if need.needed == need.parallelism and not need.limit:
                continue
            if name == OVER and self._needs_all(need, measurements):
                continue
            doubtful = need.component in explained or (name == UNDER and not saturated)
            confidence = _DOUBTFUL if doubtful else _SURE
            evidence = (load_text(need), need.limit) if need.limit else (load_text(need),)
            yield Diagnosis(name, Subject(need.component), confidence, evidence)

    def _needs_all(self, need: Need, measurements: Measurements) -> bool:
        """Whether all its tasks would be needed if the sources were as fast as their standard errors allow.

        A look-back window may have one burst less than usual.
        """
        rates, targets = rates_of(measurements)
        errors = {each: measurements.value("source-error", Subject(each)) or 0.0 for each in targets}
        most = {source: target * (1.0 + errors[source]) for source, target in targets.items()}
        at_most = size(measurements.shape, rates, most, self._utilisation).need(need.component)
        return at_most is not None and at_most.needed >= need.parallelism


def _saturated(symptoms: Sequence[Symptom], measurements: Measurements) -> bool:
    """Whether anything is at its limit now: a task has no time left, or a spout is held up.

    Otherwise all data that the sources give is done, and a backlog that grows does so because a source does not give
    its tuples. More tasks would not get them. Nor would they if too few tuples may be in flight.
    """
    if symptoms_of(symptoms, "full") or symptoms_of(symptoms, "back-pressure"):
        return True
    is_held = any(each.value >= _HELD for each in measurements.of("obstructed-share"))
    return is_held and not diagnosed(TOO_FEW, symptoms, measurements)


def explained_components(symptoms: Sequence[Symptom], measurements: Measurements) -> set[str]:
    """The components that another diagnosis explains; those of a host concern all of its tasks."""
    found = set()
    for cause in CAUSES:
        for diagnosis in diagnosed(cause, symptoms, measurements):
            if diagnosis.name not in EXPLAINED:
                continue
            subject = diagnosis.subject
            found.add(subject.component)
            for component in measurements.shape.components:
                if subject.container_id and subject.container_id in component.tasks.values():
                    found.add(component.name)
    return found


def load_text(need: Need) -> str:
    """What a component has to do, and what share that is of what its tasks can do."""
    one = need.load / need.parallelism
    return (
        f"{need.component} has to do {need.load:,.0f} tuples/s with {counted(need.parallelism, 'task')}, "
        f"{one:,.0f} each: {need.used:.0%} of what {'it' if need.parallelism == 1 else 'they'} can do"
    )


class UpdateResolver(Resolver):
    """Updates the parallelism of all components in one plan."""

    def __init__(self, utilisation: Utilisation) -> None:
        self._utilisation = utilisation

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        if diagnosis.name not in (UNDER, OVER):
            return None
        sizing = sizing_of(measurements, self._utilisation)
        changes, name = sizing.changes(), measurements.shape.name
        if not changes:
            return _advice(sizing, diagnosis)
        options = " ".join(f"--component-parallelism {component}:{tasks}" for component, tasks in changes.items())
        shown = ", ".join(
            f"{need.component} {need.parallelism} -> {need.needed}"
            for need in sizing.needs
            if need.component in changes
        )
        return Action(
            ActionKind.UPDATE,
            f"change the number of tasks: {shown}",
            f"heron update {name} {options}",
            parallelism=changes,
            before={need.component: need.parallelism for need in sizing.needs if need.component in changes},
            expected=_expectation(sizing, measurements),
        )


def _advice(sizing: Sizing, diagnosis: Diagnosis) -> Action | None:
    need = sizing.need(diagnosis.subject.component)
    if need is None or not need.limit:
        return None
    return Action(ActionKind.ADVISE, f"{need.component}: {need.limit}; make its code faster or raise the bound")


def _expectation(sizing: Sizing, measurements: Measurements) -> Expectation | None:
    """The sources will emit what they are offered, as far as it is served; within a tolerance."""
    served = {source: share for source, share in sizing.served.items() if share > 0}
    if not served:
        return None
    source = min(served, key=lambda each: (served[each], each))
    if measurements.value("target-rate", Subject(source)) is None:
        return None
    return Expectation("served-share", Subject(source), at_least=0.9 * served[source])
