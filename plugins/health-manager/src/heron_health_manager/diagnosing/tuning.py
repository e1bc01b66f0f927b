"""What the configuration holds back: too few incomplete roots, and batches of few tuples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from heron.api.api_constants import TOPOLOGY_MAX_SPOUT_PENDING
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
from heron_health_manager.diagnosing.detectors import symptoms_of

__all__ = ["SMALL_BATCHES", "TOO_FEW_PENDING", "SmallBatches", "TooFewPending", "TuningResolver"]

TOO_FEW_PENDING, SMALL_BATCHES = "too-few-pending", "small-batches"

_IDLE = 0.7  # of the time: a bolt below it could do a good deal more
_SLOWS = frozenset(
    {
        "back-pressure",
        "full",
        "late-stream-manager",
        "no-progress",
        "not-reached",
        "restarts",
        "waits-for-link",
        "waits-for-processor",
    }
)
"""Symptoms of something that makes trees slow: then more of them would only wait longer."""

_FEW_ROWS = 10.0
_ENGINE = 0.5  # of the useful time of a task

_MOST_TIMES = 4.0  # in one step: beyond, what was measured says little about the rate of the source
_SPARE = 1.25
_FASTER = 1.1


class TooFewPending(Diagnoser):
    """Spouts wait for acks, and nothing behind them is busy, slow or ill: more tuples may be in flight."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        if any(each.name in _SLOWS for each in symptoms):
            return
        busiest = max(
            (
                share
                for each in measurements.shape.components
                if each.kind == "bolt"
                for share in measurements.of_tasks("useful-share", each.name).values()
            ),
            default=0.0,
        )
        if busiest > _IDLE:
            return
        for subject, symptom in symptoms_of(symptoms, "waits-for-acks").items():
            most = measurements.shape.component(subject.component).most_pending
            evidence = [f"{subject} waits for acks {symptom.value:.0%} of the time, with {most:,} tuples in flight"]
            latency_s = measurements.value("complete-p99-s", subject)
            if latency_s is not None:
                evidence.append(f"99% of its trees are complete within {latency_s * 1000:,.0f} ms")
            evidence.append(f"the busiest task of a bolt is useful {busiest:.0%} of the time")
            yield Diagnosis(TOO_FEW_PENDING, subject, 0.8, tuple(evidence))


class SmallBatches(Diagnoser):
    """A task without time to spare needs most of it for batches of a few tuples, not for its author's code."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        worst: dict[str, tuple[float, Subject, float]] = {}
        for subject, busy in symptoms_of(symptoms, "busy").items():
            rows = measurements.value("rows-per-batch", subject)
            engine = measurements.value("engine-share", subject) or 0.0
            if rows is not None and rows < _FEW_ROWS and engine > _ENGINE * busy.value:
                worst[subject.component] = max((engine, subject, rows), worst.get(subject.component, (0.0, subject, 0)))
        for component, (engine, subject, rows) in worst.items():
            shown = f"{subject} gets {rows:.1f} tuples in a batch, and the engine takes {engine:.0%} of its time"
            yield Diagnosis(SMALL_BATCHES, Subject(component), 0.75, (shown,))


class TuningResolver(Resolver):
    """Raises the number of tuples in flight; advises a longer linger, which only a new submission can set."""

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        if diagnosis.name == SMALL_BATCHES:
            text = f"let tuples for {diagnosis.subject} wait for others: submit with --set heron.instance.linger.s=0.05"
            return Action(ActionKind.ADVISE, text)
        if diagnosis.name != TOO_FEW_PENDING:
            return None
        subject = diagnosis.subject
        most = measurements.shape.component(subject.component).most_pending
        held, rate = measurements.value("acks-share", subject), measurements.value("source-rate", subject)
        if most is None or held is None or not rate:
            return None
        times = min(_MOST_TIMES, _SPARE / max(1.0 - held, _SPARE / _MOST_TIMES))
        wanted = max(most + 1, math.ceil(most * times))
        place = f"{subject.component}:{TOPOLOGY_MAX_SPOUT_PENDING}={wanted}"
        return Action(
            ActionKind.CONFIGURE,
            f"let more tuples of {subject} be in flight: {most:,} -> {wanted:,} for each task",
            f"heron update {measurements.shape.name} --runtime-config {place}",
            settings={subject.component: {TOPOLOGY_MAX_SPOUT_PENDING: wanted}},
            settings_before={subject.component: {TOPOLOGY_MAX_SPOUT_PENDING: most}},
            expected=Expectation("source-rate", subject, at_least=_FASTER * rate),
        )
