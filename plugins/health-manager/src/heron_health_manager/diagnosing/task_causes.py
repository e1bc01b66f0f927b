"""The diagnosers of tasks and components: skew, slowness, and tasks that are stuck or die."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.spi.health import Diagnoser
from heron.spi.health_values import Diagnosis, Measurements, Subject, Symptom
from heron_health_manager.diagnosing.detectors import symptoms_of

__all__ = [
    "DataSkew",
    "DebuggedTask",
    "Garbage",
    "MemoryGrowth",
    "RestartLoop",
    "SlowExternalService",
    "SlowTask",
    "StalledSource",
    "StuckTask",
]

_MB = 1e6
_UNEVEN = 4.0  # times the mean: the 99th percentile of the time for a tuple where only some tuples are slow
_SUFFERS = ("busy", "full", "back-pressure", "no-progress")
_TOGETHER = 0.8  # of a component's tasks: then the cause is not one of the tasks


class DataSkew(Diagnoser):
    """One task has far more input than the others, and is busy with it, while it is as fast as they are."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        busy, slow = symptoms_of(symptoms, "busy"), symptoms_of(symptoms, "slow-speed")
        pressing = symptoms_of(symptoms, "back-pressure")
        for subject, skew in symptoms_of(symptoms, "input-skew").items():
            if (subject in busy or subject in pressing) and subject not in slow:
                used = measurements.value("useful-share", subject) or 0.0
                shown = f"{subject} gets {skew.value:.1f} times the mean of its component, and is busy {used:.0%}"
                name, *why = _hot(measurements, subject)
                yield Diagnosis(name, subject, 0.9, (shown, *why))


def _hot(measurements: Measurements, subject: Subject) -> tuple[str, ...]:
    """What makes the input of a task larger than that of the others: one key, one key group, or many of them.

    It is one key if the key alone is at least half of what the task gets beyond the mean of the others. The share of a
    key is one of tuples, and what is routed is in bytes: tuples of the key are taken to be as large as the others.
    """
    routed = measurements.of_tasks("routed", subject.component)
    others = [size for task, size in routed.items() if task != subject.task_id]
    excess = routed[subject.task_id] - sum(others) / len(others)
    for name, measurement, what in (
        ("hot-key", "hot-key-share", "the key"),
        ("hot-key-group", "hot-group-share", "the key group"),
    ):
        for each in measurements.of(measurement):
            if each.subject == subject and each.value * routed[subject.task_id] >= 0.5 * excess:
                return name, f"{each.value:.0%} of its input has {what} {each.detail}"
    return ("data-skew",)


class DebuggedTask(Diagnoser):
    """A debugger is attached to a task that holds others up. Its stops look like slow code, a slow key or a hang."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        suffering = {each.subject for each in symptoms if each.name in _SUFFERS}
        for each in measurements.of("debugged-s"):
            if each.subject in suffering:
                text = f"{each.detail} has been attached to {each.subject} for {each.value:.0f} s"
                yield Diagnosis("debugged-task", each.subject, 0.95, (text,))


def _debugged(measurements: Measurements) -> set[Subject]:
    return {each.subject for each in measurements.of("debugged-s")}


class SlowTask(Diagnoser):
    """A task is slower than its siblings with the same kind of input.

    Neither its host, nor garbage, nor a debugger explains it.

    Of a task with keys that is slow for few tuples, one of the keys may be slow. A restart would not help against that.
    """

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        busy = symptoms_of(symptoms, "busy") | symptoms_of(symptoms, "back-pressure")
        explained = symptoms_of(symptoms, "waits-for-processor") | symptoms_of(symptoms, "collects-garbage")
        other = explained.keys() | _debugged(measurements)
        for subject, slow in symptoms_of(symptoms, "slow-speed").items():
            if subject not in busy or subject in other:
                continue
            rate = measurements.value("true-rate", subject) or 0.0
            share = f"{slow.value:.0%}" if slow.value >= 0.01 else "less than 1%"
            evidence = [f"{subject} can do {rate:,.0f} tuples/s, {share} of the median of the other tasks"]
            blocked = measurements.value("blocked-share", subject) or 0.0
            if blocked > 0.5:
                evidence.append(f"it is blocked in its code for {blocked:.0%} of the time; the others are not")
            if few := _few_slow_tuples(measurements, subject):
                yield Diagnosis("slow-key", subject, 0.6, (evidence[0], few, *evidence[1:]))
            else:
                yield Diagnosis("slow-task", subject, 0.85, tuple(evidence))


def _few_slow_tuples(measurements: Measurements, subject: Subject) -> str:
    """That few tuples take most of the time of a task with keys, and of none of its siblings; "" otherwise."""
    if measurements.shape.component(subject.component).groups is None:
        return ""
    longest = measurements.of_tasks("execute-p99-s", subject.component)
    rates = measurements.of_tasks("true-rate", subject.component)
    uneven = [task for task, longest_s in longest.items() if longest_s * rates.get(task, 0.0) >= _UNEVEN]
    if uneven != [subject.task_id]:
        return ""
    longest_ms, mean_ms = 1000 * longest[subject.task_id], 1000 / rates[subject.task_id]
    return f"few of its tuples are slow: the slowest take {longest_ms:,.0f} ms, all take {mean_ms:,.0f} ms on average"


class SlowExternalService(Diagnoser):
    """Nearly all tasks of a component wait longer for each tuple than before, and have no time left.

    Tasks that always wait so long are not a sign of a slow service: more of them can wait at the same time. If it is
    not known how long they waited before, all of them must be busy, and blocked most of the time.
    """

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        busy, blocked = symptoms_of(symptoms, "busy"), symptoms_of(symptoms, "blocked")
        longer = symptoms_of(symptoms, "blocked-longer")
        for component in measurements.shape.components:
            tasks = [Subject(component.name, task) for task in component.tasks]
            waiting = [each for each in tasks if each in longer or (each in blocked and each in busy)]
            if component.kind != "bolt" or len(waiting) < _TOGETHER * len(tasks) or not busy.keys() & set(waiting):
                continue
            shares = [measurements.value("blocked-share", each) or 0.0 for each in waiting]
            mean = sum(shares) / len(shares)
            evidence = [f"{len(waiting)} of {len(tasks)} tasks are blocked in their code {mean:.0%} of the time"]
            if times := [longer[each].value for each in waiting if each in longer]:
                evidence.append(f"they wait {sum(times) / len(times):.1f} times as long for each tuple as before")
            yield Diagnosis("slow-external-service", Subject(component.name), 0.8, tuple(evidence))


class Garbage(Diagnoser):
    """Python's cycle collector takes much of a task's time."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "collects-garbage").items():
            yield Diagnosis(
                "garbage", subject, 0.85, (f"collections of garbage take {symptom.value:.0%} of the time of {subject}",)
            )


class StuckTask(Diagnoser):
    """Tuples wait for a task that makes no progress, while the plan does not change.

    A task that was restarted within the window is not stuck: it starts, or it dies again. Nor is one that a debugger
    stops: a restart would end its session.
    """

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        debugged = _debugged(measurements)
        for subject, symptom in symptoms_of(symptoms, "no-progress").items():
            if not measurements.value("restarts", subject) and subject not in debugged:
                waiting = (measurements.value(name, subject) or 0.0 for name in ("queue-bytes", "came-bytes"))
                queued = max(waiting)
                shown = f"{queued:,.0f} bytes wait for {subject}, and it has executed none for {symptom.value:.0f} s"
                yield Diagnosis("stuck-task", subject, 0.9, (shown,))


class StalledSource(Diagnoser):
    """Tuples wait at a source, and its spouts get none of them."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "source-stalled").items():
            backlog = measurements.value("backlog", subject) or 0.0
            shown = (
                f"{backlog:,.0f} tuples wait at the source, and {subject} has emitted none for {symptom.value:.0f} s"
            )
            yield Diagnosis("stalled-source", subject, 0.9, (shown, "nothing behind it holds it up"))


class MemoryGrowth(Diagnoser):
    """The memory of one task grows all the time."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "memory-grows").items():
            used = measurements.value("memory-bytes", subject) or 0.0
            evidence = [f"{subject} uses {used / _MB:,.0f} MB, and that grows by {symptom.value / _MB:,.1f} MB/s"]
            container = measurements.shape.component(subject.component).tasks[subject.task_id]
            free = measurements.value("memory-free-bytes", Subject(container_id=container))
            if free is not None:
                evidence.append(f"at this rate, what is free lasts {free / symptom.value / 60:,.0f} min")
            yield Diagnosis("memory-growth", subject, 0.8, tuple(evidence))


class RestartLoop(Diagnoser):
    """A task dies again and again."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "restarts").items():
            text = f"{subject} was restarted {symptom.value:.0f} times within 10 min"
            yield Diagnosis("restart-loop", subject, 0.95, (text,))
