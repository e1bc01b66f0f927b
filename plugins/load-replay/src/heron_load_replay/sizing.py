"""How many tasks and cores an objective needs, from observations of a replay and the model of the health manager."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heron.errors import HeronError
from heron.spi.health_values import Observation
from heron_cli.client import Client
from heron_cli.topologies.environment import ProfileChoice
from heron_health_manager.diagnosing.policy_round import run_round
from heron_health_manager.objectives.cheapest_plan import cheapest_plan
from heron_health_manager.objectives.grammar import Objectives
from heron_health_manager.objectives.slo_model import Costs, slo_model
from heron_health_manager.observing.observing import observe
from heron_health_manager.sizing.policy_options import SizingOptions
from heron_health_manager.slo_policy import SloPolicy

__all__ = ["ReplayObserver", "SizeAdvice", "size_for"]

_AIM = 0.9  # of the limit, as the policy aims: up to the limit itself there is room for noise
_WANTED = 0.85  # of the time of a task, as the policy `slo` wants
_WARM_UP_S = 5.0  # after the first observation: caches fill, connections open
_LEAST = 5  # observations: rates of fewer are noise
_RETRY_S = 0.2
_ANSWER_S = 5.0
_END_S = 10.0
_LONGEST_S = 86_400.0


@dataclass(frozen=True, slots=True)
class SizeAdvice:
    """The least tasks of each component that meet the objective in the model, and what the model expects of them.

    `cores` are the processors that the tasks keep busy. `reason` says why there is no `plan`; it is None then.
    """

    present: Mapping[str, int]
    plan: Mapping[str, int] | None
    cores: float
    p99_s: float
    reason: str = ""


class ReplayObserver:
    """Observes a topology from its start to its end, on a thread of its own. A context manager."""

    def __init__(self, choice: ProfileChoice) -> None:
        self.observations: list[Observation] = []
        self._choice = choice
        self._name = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replay-observer", daemon=True)

    def __enter__(self) -> ReplayObserver:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_END_S)

    def begin(self, name: str) -> None:
        """Look for the topology, and observe it from then on."""
        self._name = name
        self._thread.start()

    def _run(self) -> None:
        with Client(self._choice) as client:
            while not self._stop.wait(_RETRY_S):
                try:
                    with client.topology(self._name, timeout_s=_ANSWER_S) as topology:
                        for each in observe(topology, _LONGEST_S):
                            self.observations.append(each)
                            if self._stop.is_set():
                                return
                except HeronError:  # it is not there yet, or has ended
                    continue


def size_for(observations: Sequence[Observation], p99_s: float) -> SizeAdvice | None:
    """Return the least tasks for a 99th percentile; None if the observations are too few."""
    first_s = observations[0].at_s + _WARM_UP_S if observations else 0.0
    window = [each for each in observations if each.at_s >= first_s]
    found = run_round(SloPolicy.open({}), window)
    if found is None or len(window) < _LEAST:
        return None
    objectives = Objectives(latency_s=p99_s)
    model = slo_model(found.measurements, objectives, SizingOptions(wanted_utilisation=_WANTED).utilisation(), Costs())
    if not model.needs:
        return None
    cores = sum(each.load * each.service_s for each in model.model.stages.values())
    if model.out_of_reach:
        return SizeAdvice(model.present, None, cores, 0.0, model.out_of_reach)
    search = cheapest_plan(model.model, replace(objectives, latency_s=_AIM * p99_s))
    if search.plan is None:
        search = cheapest_plan(model.model, objectives)
    if search.plan is None:
        return SizeAdvice(model.present, None, cores, 0.0, search.reason)
    return SizeAdvice(model.present, search.plan, cores, model.model.latency_s(search.plan))
