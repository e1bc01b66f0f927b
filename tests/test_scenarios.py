"""Policies on models of topologies: steps of the load, and a day of it. The whole loop of the health manager runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ground_truth.scenarios import BEGIN, END, day_row, step_rows

from heron_health_manager.dhalion_policy import DhalionPolicy
from heron_health_manager.ds2_policy import Ds2Policy
from heron_testing.topology_model.day import day
from heron_testing.topology_model.scenarios import SCENARIOS, Scenario, step

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "health.md"


@pytest.mark.matrix
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_ds2_reaches_the_known_optimum_in_two_steps_at_most(scenario: Scenario) -> None:
    """A second step is needed where the tasks that drained a backlog are spared, or a window hid results."""
    for outcome in step(scenario, Ds2Policy):
        assert outcome.rests
        assert 1 <= outcome.steps <= 2
        assert 0 <= outcome.more <= 1
        assert outcome.settled_s <= 180


@pytest.mark.matrix  # a long model
def test_dhalion_needs_more_steps() -> None:
    """It sees one bottleneck at a time; so the model is not one on which every policy is right."""
    up, _ = step(SCENARIOS[0], DhalionPolicy)
    assert up.steps > 2 * step(SCENARIOS[0], Ds2Policy)[0].steps


@pytest.mark.matrix  # a long model
def test_a_day_of_load_needs_few_changes_and_no_waiting() -> None:
    """From 1 to 12 tasks and back. Each component needs four changes up and four down at least."""
    found = day(Ds2Policy)
    assert found.changes <= 24
    assert found.turns == 0
    assert found.behind <= 0.01
    assert found.longest_s <= 180
    assert found.task_hours <= 1.1 * found.optimum_hours


@pytest.mark.matrix
def test_the_document_has_the_newest_figures() -> None:
    """`./dev scenarios` writes them. Models have no clock and no luck, so they are the same on every machine."""
    text = DOCUMENT.read_text(encoding="utf-8")
    written = text[text.index(BEGIN) : text.index(END)]
    for line in (*(row for each in SCENARIOS for row in step_rows(each, Ds2Policy)), day_row(Ds2Policy)):
        assert f"{line}\n" in written
