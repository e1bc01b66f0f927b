"""The decisions of a health manager are kept in order, and the oldest ones are dropped."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from heron.spi.health_values import Action, ActionKind, Decision, DecisionState, Diagnosis, Subject
from heron.state_nodes.health_records import KEPT, HealthRecords, decode_health_records, encode_health_records

CAUSE = Diagnosis("stuck-task", Subject("count", 3), 0.9, ("it executes nothing",))
FIRST = Decision(1, 0.0, "ds2", CAUSE, Action(ActionKind.RESTART, "restart"), DecisionState.ADVISED, "")


def test_a_decision_replaces_that_with_its_number() -> None:
    """Its state changes, and its place does not."""
    records = HealthRecords("t-1").with_decisions(replace(FIRST, number=2), FIRST)
    assert [each.number for each in records.decisions] == [1, 2]
    later = records.with_decisions(replace(FIRST, state=DecisionState.STARTED))
    assert [each.state for each in later.decisions] == [DecisionState.STARTED, DecisionState.ADVISED]


def test_a_decision_of_an_earlier_form_is_read() -> None:
    """Versions before this one did not record when an action was complete."""
    records = HealthRecords("t-1").with_decisions(replace(FIRST, carried_out_at_s=5.0))
    document = msgspec.json.decode(encode_health_records(records))
    del document["decisions"][0]["carried_out_at_s"]
    assert decode_health_records(msgspec.json.encode(document), "t").decisions == (FIRST,)


def test_the_oldest_decisions_are_dropped_but_none_that_is_under_way() -> None:
    """A node of the state manager has a limit. What was begun must never be forgotten."""
    records = HealthRecords("t-1").with_decisions(replace(FIRST, state=DecisionState.STARTED))
    for number in range(2, KEPT + 50):
        records = records.with_decisions(replace(FIRST, number=number))
    numbers = [each.number for each in records.decisions]
    assert (len(numbers), numbers[0], numbers[-1]) == (KEPT, 1, KEPT + 49)


def test_advice_is_dropped_before_what_was_tried() -> None:
    """A night of advice must not make the health manager forget what did not help. The newest half of it is kept."""
    records = HealthRecords("t-1").with_decisions(replace(FIRST, state=DecisionState.INEFFECTIVE))
    for number in range(2, 2 * KEPT):
        records = records.with_decisions(replace(FIRST, number=number))
    assert [each.number for each in records.decisions] == [1, *range(KEPT + 1, 2 * KEPT)]
    for number in range(2 * KEPT, 2 * KEPT + KEPT // 2):
        records = records.with_decisions(replace(FIRST, number=number, state=DecisionState.EFFECTIVE))
    advised = [each.number for each in records.decisions if each.state is DecisionState.ADVISED]
    assert advised == [*range(2 * KEPT - KEPT // 2, 2 * KEPT)]
