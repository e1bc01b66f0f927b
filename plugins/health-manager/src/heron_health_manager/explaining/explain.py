"""From facts to an explanation. Pure: it reads no clock, no file and no socket."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from heron_health_manager.explaining.deaths import death_problems
from heron_health_manager.explaining.explanation import Explanation, Problem
from heron_health_manager.explaining.facts import Facts
from heron_health_manager.explaining.not_running import OTHER, container_problems
from heron_health_manager.explaining.poisoned import poison_errors, poison_problems
from heron_health_manager.explaining.run_end import end_problem, run_end
from heron_health_manager.explaining.slowness import slowness_problems
from heron_health_manager.explaining.tuple_errors import error_problems
from heron_health_manager.explaining.uncounted_restarts import uncounted_restarts
from heron_health_manager.explaining.words import duration

__all__ = ["explain"]

_CONSEQUENCES = frozenset({"restart-loop", "stuck-task", "slow-task", "unexplained-back-pressure"})
"""Diagnoses that follow from the death of their subject."""


def explain(facts: Facts) -> Explanation:
    """Return what suffers and why, the most serious first."""
    slow = tuple(slowness_problems(facts)) if facts.running else ()
    deaths = tuple(_with_effect(each, slow) for each in death_problems(facts))
    failed, others = end_problem(facts, deaths)
    known = {each.subject for each in deaths}
    missing = [each for each in container_problems(facts) if each.kind != OTHER or each.subject not in known]
    absent = {f"container {each.container_id}" for each in facts.containers if not each.running}
    slow = tuple(each for each in slow if each.kind != "unreachable-peer" or each.subject not in absent)
    slow = tuple(each for each in slow if each.kind not in _CONSEQUENCES or each.subject not in known)
    poison = list(poison_problems(facts))
    poisoned = poison_errors(facts)
    errors = [each for each in error_problems(facts) if each.subject not in known]
    errors = [each for each in errors if not _is_repeated(each, poisoned)]
    problems = [*([failed] if failed else []), *missing, *others, *slow, *poison, *errors]
    problems.sort(key=lambda each: (-each.gravity, each.subject))
    if any(each.gravity > 0 for each in problems):
        problems = [each for each in problems if each.gravity > 0]  # spare tasks do not suffer
    end = run_end(facts)
    return Explanation(
        facts.topology,
        facts.now_s,
        tuple(_summary(facts, problems)),
        tuple(problems),
        tuple(_unknown(facts)),
        end.short() if end else "",
    )


def _is_repeated(error: Problem, poisoned: Collection[tuple[str, str]]) -> bool:
    """Whether the dead letters of a component name the records of this error."""
    component = error.subject.partition("/")[0]
    return any(component == where and f" raised {kind}: " in error.why[0] for where, kind in poisoned)


def _with_effect(death: Problem, slow: Sequence[Problem]) -> Problem:
    """A process that died, with the source that it holds up."""
    effects = (each for each in slow if each.subject == death.subject and each.kind in _CONSEQUENCES)
    effect = next((each.effect for each in effects if each.effect), "")
    return replace(death, what=f"{death.what}; {effect}", effect=effect) if effect else death


def _summary(facts: Facts, problems: list[Problem]) -> Iterator[str]:
    """How it is where nothing suffers."""
    if problems:
        return
    end = run_end(facts)
    if end is not None:
        yield f"{end.text(facts.topology)}; nothing suffered"
    elif facts.found is not None and facts.found.measurements.shape.changing:
        yield f"{facts.topology} is being updated, so rates say little; try again when the update is complete"
    else:
        yield f"{facts.topology}: nothing suffers{_busiest(facts)}"
    if facts.events is not None:
        yield f"no process died in the last {duration(facts.now_s - facts.since_s)}"


def _busiest(facts: Facts) -> str:
    shares = {each.subject: each.value for each in facts.found.measurements.of("useful-share")} if facts.found else {}
    if not shares:
        return " that is known; its tasks have sent no metrics"
    busiest = max(shares, key=lambda each: (shares[each], each))
    return f"; its busiest task is {busiest}, {shares[busiest]:.0%} of the time"


def _unknown(facts: Facts) -> Iterator[str]:
    yield from facts.unknown
    if facts.running and facts.found is not None:
        yield from (f"left out: {each}" for each in facts.found.failed)
    yield from uncounted_restarts(facts)
