"""Diagnoses of a health policy as problems: from the source that is held up to the cause. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from heron.ipc.documents.status import Culprit, LongCallStatus
from heron.spi.health_values import Diagnosis, Measurements, Subject, TopologyShape
from heron_health_manager.diagnosing.diagnosers import EXPLAINED
from heron_health_manager.diagnosing.policy_round import Finding
from heron_health_manager.diagnosing.thresholds import REPORTED
from heron_health_manager.explaining.exclusions import exclusions
from heron_health_manager.explaining.explanation import Problem
from heron_health_manager.explaining.facts import Facts
from heron_health_manager.explaining.words import duration
from heron_health_manager.sizing.provisioning import OVER, UNDER

__all__ = ["slowness_problems"]

_SLOW, _SPARE = 40.0, 0.0  # gravity
_HELD = 1.05  # a source whose target is that many times its rate is held up

_STATES = {
    UNDER: "{} has too few tasks for its load",
    OVER: "nothing suffers, but {} has more tasks than its load needs",
    "data-skew": "{} gets more than its share of the data",
    "hot-key": "{} is busy with one key",
    "hot-key-group": "{} is busy with the keys of one group",
    "too-few-pending": "{} waits for acks: its limit of tuples in flight is too low",
    "small-batches": "the engine needs most of the time of {}, for batches of few tuples",
    "debugged-task": "{} is under a debugger",
    "slow-key": "{} is slow for a few of its tuples, perhaps those of one key",
    "slow-task": "{} is slower than the other tasks of its component",
    "blocked-host": "{} runs on a host that is blocked",
    "slow-host": "the tasks of {} wait for a processor",
    "slow-external-service": "{} waits for something outside of the topology",
    "stuck-task": "{} makes no progress",
    "stalled-source": "{} emits nothing, although tuples wait at its source",
    "restart-loop": "{} dies again and again",
    "memory-near-limit": "{} has nearly used up its memory",
    "memory-growth": "the memory of {} grows without an end in sight",
    "garbage": "{} spends its time on the collection of garbage",
    "slow-stream-manager": "the stream manager of {} does not keep up",
    "slow-link": "data for {} waits on its way from another container",
    "unreachable-peer": "{} is not reached by the others",
    "unexplained-back-pressure": "back pressure holds the spouts of {}",
}


def slowness_problems(facts: Facts) -> Iterator[Problem]:
    """A problem for each cause. Findings with one remedy are one problem; consequences of a cause are left out."""
    if facts.found is None or facts.found.measurements.shape.changing:
        return
    findings = facts.found.findings
    causes = {each.diagnosis.name for each in findings if each.diagnosis.confidence >= REPORTED} & EXPLAINED
    by_remedy: dict[str, list[Finding]] = {}
    for each in findings:
        if causes and each.diagnosis.confidence < REPORTED and each.diagnosis.name in (UNDER, OVER):
            continue
        diagnosis, action = each.diagnosis, each.action
        key = action.command if action and action.command and diagnosis.name in (UNDER, OVER) else ""
        by_remedy.setdefault(key or f"{diagnosis.name} {diagnosis.subject}", []).append(each)
    for group in by_remedy.values():
        yield _problem(facts, facts.found.measurements, _main_first(group))


def _main_first(group: Sequence[Finding]) -> list[Finding]:
    """What is too small matters more than what is too large."""
    return sorted(group, key=lambda each: each.diagnosis.name == OVER)


def _problem(facts: Facts, measurements: Measurements, group: Sequence[Finding]) -> Problem:
    main = group[0]
    diagnosis, action = main.diagnosis, main.action
    over, since_s = diagnosis.name == OVER, _since_s(facts, diagnosis)
    state = _STATES.get(diagnosis.name, diagnosis.name + " of {}").format(_subject(diagnosis.subject))
    held = [] if over else list(_held(measurements, diagnosis.subject))
    names = {each.diagnosis.name for each in group}
    why = [*diagnosis.evidence, *(each.diagnosis.evidence[0] for each in group[1:]), *_long_call(facts, diagnosis)]
    return Problem(
        kind=diagnosis.name,
        subject=str(diagnosis.subject),
        what=held[0] if held else state,
        why=(state, *why) if held else tuple(why),
        since_s=since_s,
        observed_s=facts.observed_s if since_s is None else 0.0,
        ruled_out=tuple(exclusions(measurements, diagnosis.subject.component, names)),
        action=action.text if action else "",
        command=_command(facts, diagnosis, action.command if action else ""),
        effect=held[0] if held else "",
        gravity=_SPARE if over else _SLOW + 10 * diagnosis.confidence + (20 if held else 0),
    )


def _subject(subject: Subject) -> str:
    return str(subject)


def _held(measurements: Measurements, subject: Subject) -> Iterator[str]:
    """The sources before a subject that emit less than they could."""
    for source in _sources_before(measurements.shape, subject):
        rate = measurements.value("source-rate", Subject(source))
        target = measurements.value("target-rate", Subject(source))
        if rate is not None and target is not None and rate >= 0 and target > max(_HELD * rate, 1.0):
            yield f"{source} emits {rate:,.0f} tuples/s, and could emit {target:,.0f}"


def _sources_before(shape: TopologyShape, subject: Subject) -> list[str]:
    """The spouts from which data reaches a component, a container's tasks, or the topology."""
    waiting = [
        each.name
        for each in shape.components
        if subject.component in (each.name, "")
        and (not subject.container_id or subject.container_id in each.tasks.values())
    ]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [each.component for each in shape.component(name).inputs]
    return [each.name for each in shape.components if each.name in seen and not each.inputs]


def _since_s(facts: Facts, diagnosis: Diagnosis) -> float | None:
    """Since when its back pressure lasts, or the call that does not return."""
    subject, status = diagnosis.subject, facts.status
    if status is None:
        return None
    since: tuple[Culprit | LongCallStatus, ...] = (*status.backpressure, *status.long_calls)
    concerned = [
        each.since_s for each in since if each.component == subject.component and subject.task_id in (0, each.task_id)
    ]
    concerned += [
        facts.now_s - each.silent_s for each in status.unreached if each.container_id == subject.container_id > 0
    ]
    return min(concerned, default=None)


def _long_call(facts: Facts, diagnosis: Diagnosis) -> Iterator[str]:
    for each in facts.status.long_calls if facts.status else ():
        if each.task_id == diagnosis.subject.task_id:
            age = duration(facts.now_s - each.since_s)
            yield f"it has been in one call of {each.function} for {age}, at {each.place}"


def _command(facts: Facts, diagnosis: Diagnosis, command: str) -> str:
    """The command of the action, or one that shows more."""
    subject = diagnosis.subject
    if command:
        return command
    if subject.task_id:
        return f"heron stack {facts.topology} {subject.task_id}"
    if diagnosis.name == "slow-external-service" and (tasks := _tasks_of(facts, subject.component)):
        return f"heron profile {facts.topology} {min(tasks)}"  # it shows the line that waits
    if subject.component:
        return f"heron metrics {facts.topology} --component {subject.component}"
    return f"heron status {facts.topology}"


def _tasks_of(facts: Facts, component: str) -> Collection[int]:
    return facts.found.measurements.shape.component(component).tasks if facts.found else ()
