"""The resolvers of causes other than the size of a component: restart, rebalance, or advise a person."""

from __future__ import annotations

from collections.abc import Mapping

from heron.spi.health import Resolver
from heron.spi.health_values import Action, ActionKind, Diagnosis, Expectation, Measurements, Subject
from heron_health_manager.diagnosing.thresholds import BUSY, LATE, PRESSED, STEAL, WAITS
from heron_health_manager.diagnosing.tuning import TuningResolver

__all__ = ["RESOLVERS", "AdviceResolver", "MemoryResolver", "RebalanceResolver", "RestartResolver", "SpreadResolver"]


_SLOW_HOST: Mapping[str, float] = {"host-pressure-share": PRESSED, "host-steal-share": STEAL}
_MORE_MEMORY = 1.5  # times the present limit
_SOME = 0.001  # tuples/s: the task executes again, whatever still waits for it


class RestartResolver(Resolver):
    """Restarts the container of what is stuck or slow; a scheduler that can starts it on another host.

    A slow host is a reason only while another one is not slow. A limit of the container itself goes with it. For a slow
    or blocked host, a scheduler that can avoid hosts must choose another one.
    """

    expects: Mapping[str, tuple[str, float | None, float | None]] = {
        "blocked-host": ("host-blocked-s", None, 0.0),
        "stuck-task": ("rate-in", _SOME, None),
        "slow-task": ("useful-share", None, BUSY),
        "slow-host": ("cpu-wait-share", None, WAITS),
    }
    """The measurement that will be at least, or at most, a value, by diagnosis.

    It is that of the subject; for a slow host, that of its busiest task which waits for a processor.
    """

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        if diagnosis.name not in self.expects:
            return None
        subject = diagnosis.subject
        container = subject.container_id or _container_of(subject, measurements)
        slow_host = diagnosis.name == "slow-host"
        if not container or (slow_host and not _has_better_host(subject, measurements)):
            return None
        measured = _waiting_in(container, measurements) if slow_host else subject
        if measured is None:
            return None
        measurement, at_least, at_most = self.expects[diagnosis.name]
        return Action(
            ActionKind.RESTART,
            f"restart container {container}" + ("" if subject.container_id else f", which has {subject}"),
            f"heron restart {measurements.shape.name} {container}",
            container_id=container,
            elsewhere=bool(subject.container_id),
            expected=Expectation(measurement, measured, at_least, at_most),
        )


def _has_better_host(subject: Subject, measurements: Measurements) -> bool:
    """Whether the host of another container does not have what makes this one slow: a restart may lead there."""
    causes = [name for name, limit in _SLOW_HOST.items() if (measurements.value(name, subject) or 0.0) > limit]
    others = (Subject(container_id=each) for each in measurements.shape.containers() if each != subject.container_id)
    return bool(causes) and any(
        all((share := measurements.value(name, other)) is not None and share <= _SLOW_HOST[name] for name in causes)
        for other in others
    )


def _waiting_in(container: int, measurements: Measurements) -> Subject | None:
    """The busiest task of a container that waits for a processor; None if none does."""
    waiting = [
        each.subject
        for each in measurements.of("cpu-wait-share")
        if each.value > WAITS and _container_of(each.subject, measurements) == container
    ]
    return max(waiting, key=lambda each: measurements.value("useful-share", each) or 0.0, default=None)


def _container_of(subject: Subject, measurements: Measurements) -> int:
    for component in measurements.shape.components:
        if component.name == subject.component:
            return component.tasks.get(subject.task_id, 0)
    return 0


class RebalanceResolver(Resolver):
    """Moves key groups of a component with skewed input to its idle tasks. Without a fields grouping it has none."""

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        component = diagnosis.subject.component
        if diagnosis.name not in ("data-skew", "hot-key-group") or not component:
            return None
        if measurements.shape.component(component).groups is None:
            return None
        return Action(
            ActionKind.REBALANCE,
            f"move keys of {component} from busy tasks to idle ones; if one key is too hot, group by partial key",
            f"heron update {measurements.shape.name} --rebalance {component}",
            component=component,
            expected=Expectation("useful-share", diagnosis.subject, at_most=BUSY),
        )


class SpreadResolver(Resolver):
    """Gives a stream manager that has too much to do fewer tasks: a further container takes some of them.

    Where the threads of its host wait for a processor, one more process would not help.
    """

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        subject, shape = diagnosis.subject, measurements.shape
        containers = len(shape.containers())
        tasks = sum(each.parallelism for each in shape.components)
        pressed = measurements.value("host-pressure-share", subject)
        if diagnosis.name != "slow-stream-manager" or containers >= tasks or pressed is None or pressed >= PRESSED:
            return None
        return Action(
            ActionKind.UPDATE,
            f"spread the tasks over {containers + 1} containers",
            f"heron update {shape.name} --container-number {containers + 1}",
            containers=containers + 1,
            containers_before=containers,
            expected=Expectation("stmgr-late-share", subject, at_most=LATE),
        )


class AdviceResolver(Resolver):
    """Says what a person can do, where the engine can do nothing."""

    advice: Mapping[str, str] = {
        "slow-external-service": "make the service that {} calls faster, or call it for many tuples at once",
        "garbage": "keep fewer objects that refer to each other in {}, or use a state backend",
        "restart-loop": "look at the last error of {} in `heron status`, and correct it",
        "hot-key": "let two tasks share the key that keeps {0} busy: in the inputs of {0.component}, write "
        "Grouping.PARTIAL_KEY(...) instead of Grouping.fields(...)",
        "data-skew": "change the grouping of {0.component}, which sends {0} more data than the other tasks",
        "debugged-task": "detach the debugger from {}: others wait while it stops the task",
        "slow-key": "look for the key whose tuples take long in {}; a restart does not help",
        "memory-growth": "look for what {} keeps for each tuple",
        "stalled-source": "look at the source of {}: it does not give what waits there",
        "slow-link": "look at the network between {} and the others, or raise heron.link.window.bytes",
        "unreachable-peer": "look at the network and the host of {}",
        "slow-stream-manager": "put fewer tasks into {} (topology.stmgrs), or give its host more processors",
        "unexplained-back-pressure": "look at `heron status`: no measurement explains the back pressure of {}",
        "slow-host": "give {} more processors, or move other work away from its host",
    }
    """What to do about a subject, by diagnosis."""

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        text, subject = self.advice.get(diagnosis.name), diagnosis.subject
        if text is None:
            return None
        name = measurements.shape.name
        command = f"heron memory {name} {subject.task_id}" if diagnosis.name == "memory-growth" else ""
        return Action(ActionKind.ADVISE, text.format(subject), command)


class MemoryResolver(Resolver):
    """Advises half as much memory again for containers, with the line, which only a new submission can set."""

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        if diagnosis.name != "memory-near-limit":
            return None
        limit = measurements.value("memory-limit-bytes", diagnosis.subject)
        wanted = "BYTES" if limit is None else str(int(_MORE_MEMORY * limit))
        line = f'set_config({{"topology.container.ram": {wanted}}})'
        return Action(ActionKind.ADVISE, f"keep less state in {diagnosis.subject}, or submit with more memory: {line}")


RESOLVERS: tuple[Resolver, ...] = (
    RestartResolver(),
    RebalanceResolver(),
    SpreadResolver(),
    TuningResolver(),
    MemoryResolver(),
    AdviceResolver(),
)
"""The resolvers of the policies that are shipped, besides those of the size."""
