"""``./dev scenarios``: what each policy makes of models of topologies, written into docs/health.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ground_truth.results import DOCUMENT, table_row, with_section
from heron.spi.health import HealthPolicy
from heron_health_manager.dhalion_policy import DhalionPolicy
from heron_health_manager.ds2_policy import Ds2Policy
from heron_testing.topology_model.day import day
from heron_testing.topology_model.scenarios import SCENARIOS, Scenario, step

__all__ = ["BEGIN", "END", "day_row", "step_rows"]

BEGIN = "<!-- written by ./dev scenarios -->"
END = "<!-- end of what ./dev scenarios wrote -->"

_POLICIES: tuple[type[HealthPolicy], ...] = (Ds2Policy, DhalionPolicy)
_NAMES = {Ds2Policy: "ds2", DhalionPolicy: "dhalion"}
_STEPS = ("topology", "load of each source", "policy", "updates", "nothing waits after", "tasks", "optimum")
_DAY = ("policy", "updates", "taken back", "behind", "longest", "task hours", "optimum")


def step_rows(scenario: Scenario, policy: type[HealthPolicy]) -> Iterator[str]:
    """The rows of a scenario: the step up, and the step down."""
    before = scenario.low
    for outcome in step(scenario, policy):
        load = f"{before:,.0f} to {outcome.load:,.0f}/s"
        updates = str(outcome.steps) if outcome.rests else f"{outcome.steps}, and no rest within half an hour"
        sizes = (_sizes(outcome.tasks), _sizes(outcome.optimum))
        yield table_row((scenario.name, load, f"`{_NAMES[policy]}`", updates, f"{outcome.settled_s:.0f} s", *sizes))
        before = outcome.load


def day_row(policy: type[HealthPolicy]) -> str:
    """The row of a day."""
    found = day(policy)
    hours = f"{found.task_hours:.0f}", f"{found.optimum_hours:.0f}"
    shown = str(found.changes), str(found.turns), f"{found.behind:.1%}", f"{found.longest_s} s"
    return table_row((f"`{_NAMES[policy]}`", *shown, *hours))


def section() -> Iterator[str]:
    """The lines between the marks."""
    yield from (table_row(_STEPS), table_row(["---"] * len(_STEPS)))
    for scenario in SCENARIOS:
        for policy in _POLICIES:
            yield from step_rows(scenario, policy)
    yield from ("", table_row(_DAY), table_row(["---"] * len(_DAY)))
    yield from map(day_row, _POLICIES)


def _sizes(tasks: Mapping[str, int]) -> str:
    return " + ".join(map(str, tasks.values()))


if __name__ == "__main__":
    lines = list(section())  # takes minutes; the document may change meanwhile
    DOCUMENT.write_text(with_section(DOCUMENT.read_text(encoding="utf-8"), lines, (BEGIN, END)), encoding="utf-8")
