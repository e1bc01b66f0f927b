"""The diagnosers of causes other than the size of a component: what is slow, stuck, dying, full or not reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from heron.spi.health import Diagnoser
from heron.spi.health_values import Diagnosis, Measurements, Subject, Symptom

__all__ = ["CAUSES", "EXPLAINED", "symptoms_of"]

_TOGETHER = 0.8  # of a component's tasks: then the cause is not one of the tasks

EXPLAINED = frozenset({"data-skew", "slow-task", "slow-host", "slow-external-service", "stuck-task", "garbage"})
"""Diagnoses that explain why a component is slow, so that more tasks are not the first remedy."""


def symptoms_of(symptoms: Iterable[Symptom], name: str) -> dict[Subject, Symptom]:
    """The symptoms of that name by subject."""
    return {each.subject: each for each in symptoms if each.name == name}


class DataSkew(Diagnoser):
    """One task has far more input than the others, and is busy with it, while it is as fast as they are."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        busy, slow = symptoms_of(symptoms, "busy"), symptoms_of(symptoms, "slow-speed")
        pressing = symptoms_of(symptoms, "back-pressure")
        for subject, skew in symptoms_of(symptoms, "input-skew").items():
            if (subject in busy or subject in pressing) and subject not in slow:
                used = measurements.value("useful-share", subject) or 0.0
                yield Diagnosis(
                    "data-skew",
                    subject,
                    0.9,
                    (f"{subject} gets {skew.value:.1f} times the mean of its component, and is busy {used:.0%}",),
                )


class SlowTask(Diagnoser):
    """A task is slower than its siblings with the same kind of input, and its host does not explain it."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        busy, waits = symptoms_of(symptoms, "busy"), symptoms_of(symptoms, "waits-for-processor")
        for subject, slow in symptoms_of(symptoms, "slow-speed").items():
            if subject not in busy or subject in waits:
                continue
            rate = measurements.value("true-rate", subject) or 0.0
            evidence = [f"{subject} can do {rate:,.0f} tuples/s, {slow.value:.0%} of the median of the other tasks"]
            blocked = measurements.value("blocked-share", subject) or 0.0
            if blocked > 0.5:
                evidence.append(f"it is blocked in its code for {blocked:.0%} of the time; the others are not")
            yield Diagnosis("slow-task", subject, 0.85, tuple(evidence))


class SlowHost(Diagnoser):
    """The tasks of a container wait for a processor: others use it, a hypervisor takes it, or a limit stops them."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        waits = symptoms_of(symptoms, "waits-for-processor")
        causes = {
            "steal": "a hypervisor takes {:.0%} of its processors",
            "throttled-container": "its limit of processors stops it {:.0%} of the time",
            "host-pressed": "threads of the host wait for a processor {:.0%} of the time",
        }
        for container in measurements.shape.containers():
            subject = Subject(container_id=container)
            evidence = [
                text.format(symptom.value)
                for name, text in causes.items()
                if (symptom := symptoms_of(symptoms, name).get(subject))
            ]
            waiting = [
                Subject(component.name, task)
                for component in measurements.shape.components
                for task, place in component.tasks.items()
                if place == container and Subject(component.name, task) in waits
            ]
            if waiting and evidence:
                longest = max(waits[each].value for each in waiting)
                shown = f"{len(waiting)} of its tasks wait for a processor, up to {longest:.0%} of the time"
                yield Diagnosis("slow-host", subject, 0.9, (shown, *evidence))


class SlowExternalService(Diagnoser):
    """Nearly all busy tasks of a component are blocked in their code, without waiting for a processor."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        busy, blocked = symptoms_of(symptoms, "busy"), symptoms_of(symptoms, "blocked")
        for component in measurements.shape.components:
            tasks = [Subject(component.name, task) for task in component.tasks]
            both = [each for each in tasks if each in busy and each in blocked]
            if component.kind == "bolt" and both and len(both) >= _TOGETHER * len(tasks):
                mean = sum(blocked[each].value for each in both) / len(both)
                text = f"{len(both)} of {len(tasks)} tasks are blocked in their code {mean:.0%} of the time"
                yield Diagnosis("slow-external-service", Subject(component.name), 0.8, (text,))


class Garbage(Diagnoser):
    """Python's cycle collector takes much of a task's time."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "collects-garbage").items():
            yield Diagnosis(
                "garbage", subject, 0.85, (f"collections of garbage take {symptom.value:.0%} of the time of {subject}",)
            )


class StuckTask(Diagnoser):
    """Tuples wait for a task that makes no progress, while the plan does not change."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        restarted = symptoms_of(symptoms, "restarts")
        for subject, symptom in symptoms_of(symptoms, "no-progress").items():
            if subject not in restarted:
                yield Diagnosis(
                    "stuck-task",
                    subject,
                    0.9,
                    (f"{symptom.value:,.0f} bytes wait for {subject}, and it executes none",),
                )


class RestartLoop(Diagnoser):
    """A task dies again and again."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "restarts").items():
            yield Diagnosis(
                "restart-loop", subject, 0.95, (f"{subject} was restarted {symptom.value:.0f} times in the window",)
            )


class MemoryNearLimit(Diagnoser):
    """A container uses nearly all the memory that it may."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "memory-high").items():
            yield Diagnosis(
                "memory-near-limit", subject, 0.9, (f"{subject} uses {symptom.value:.0%} of its memory limit",)
            )


class UnreachablePeer(Diagnoser):
    """The stream managers of other containers do not reach that of a container."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "not-reached").items():
            yield Diagnosis(
                "unreachable-peer", subject, 0.95, (f"{subject} has not been reached for {symptom.value:.0f} s",)
            )


class SlowStreamManager(Diagnoser):
    """A stream manager's own timer fires late: it has too much to do, or no processor."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "late-stream-manager").items():
            text = f"the stream manager of {subject} does no work for {symptom.value:.0%} of the time"
            yield Diagnosis("slow-stream-manager", subject, 0.85, (text,))


class UnexplainedPressure(Diagnoser):
    """Back pressure, and no culprit is busy: people should know that the cause is not known."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        pressing = symptoms_of(symptoms, "back-pressure")
        known = {subject for name in ("busy", "no-progress", "restarts") for subject in symptoms_of(symptoms, name)}
        if pressing and not known & pressing.keys():
            culprits = ", ".join(str(each) for each in sorted(pressing))
            text = f"back pressure comes from {culprits}, and none of them is busy"
            yield Diagnosis("unexplained-back-pressure", Subject(), 0.3, (text,))


CAUSES: tuple[Diagnoser, ...] = (
    UnreachablePeer(),
    RestartLoop(),
    StuckTask(),
    MemoryNearLimit(),
    SlowHost(),
    SlowStreamManager(),
    Garbage(),
    DataSkew(),
    SlowTask(),
    SlowExternalService(),
    UnexplainedPressure(),
)
