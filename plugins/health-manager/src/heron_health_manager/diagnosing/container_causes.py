"""The diagnosers of containers: their hosts, memory, stream managers and connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.spi.health import Diagnoser
from heron.spi.health_values import Diagnosis, Measurements, Subject, Symptom
from heron_health_manager.diagnosing.detectors import symptoms_of
from heron_health_manager.diagnosing.thresholds import QUIET_S

__all__ = ["BlockedHost", "MemoryNearLimit", "SlowHost", "SlowLink", "SlowStreamManager", "UnreachablePeer"]


class SlowHost(Diagnoser):
    """Tasks of a container wait for a processor: others use it, a hypervisor takes it, or a limit stops them.

    A task with time to spare does all of its work in spite of such waits, so it does not count. Neither does a task
    that needs the processor for collections of garbage, or one that stands still: its last rates are not of now.
    """

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        waits = symptoms_of(symptoms, "waits-for-processor").keys() & symptoms_of(symptoms, "full").keys()
        waits -= symptoms_of(symptoms, "collects-garbage").keys()
        waits -= {each.subject for each in measurements.of("still-s") if each.value >= QUIET_S}
        causes = {
            "a hypervisor takes {:.0%} of its processors": symptoms_of(symptoms, "steal"),
            "its limit of processors stops it {:.0%} of the time": symptoms_of(symptoms, "throttled-container"),
            "threads of the host wait for a processor {:.0%} of the time": symptoms_of(symptoms, "host-pressed"),
        }
        waiting_in: dict[int, list[Subject]] = {}
        for each in waits:
            place = measurements.shape.component(each.component).tasks[each.task_id]
            waiting_in.setdefault(place, []).append(each)
        for container, waiting in sorted(waiting_in.items()):
            subject = Subject(container_id=container)
            evidence = [text.format(found[subject].value) for text, found in causes.items() if subject in found]
            if evidence:
                longest = max(measurements.value("cpu-wait-share", each) or 0.0 for each in waiting)
                shown = f"{len(waiting)} of its tasks wait for a processor, up to {longest:.0%} of the time"
                # The host that keeps its tasks waiting for longest comes first.
                yield Diagnosis("slow-host", subject, 0.85 + 0.1 * min(1.0, longest), (shown, *evidence))


class BlockedHost(Diagnoser):
    """A container is on a host that schedulers avoid, because it was bad for others or a person has blocked it."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        for subject, symptom in symptoms_of(symptoms, "on-blocked-host").items():
            text = f"its host has been blocked for {symptom.value:.0f} s; `heron hosts list` shows why"
            yield Diagnosis("blocked-host", subject, 0.95, (text,))


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
            late = f"{symptom.value:.0%} of the time"
            text = f"the stream manager of {subject} is late for {late}: it has too much to do, or gets no processor"
            yield Diagnosis("slow-stream-manager", subject, 0.85, (text,))


class SlowLink(Diagnoser):
    """Data waits in other containers for idle tasks of a container, and no stream manager is late or unreached."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        if symptoms_of(symptoms, "late-stream-manager") or symptoms_of(symptoms, "not-reached"):
            return
        for subject, symptom in symptoms_of(symptoms, "waits-for-link").items():
            text = f"{symptom.value:,.0f} bytes wait in another container for an idle task of {subject}"
            yield Diagnosis("slow-link", subject, 0.85, (text, "the stream managers of both are in time"))
