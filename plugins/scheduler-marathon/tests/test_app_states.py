"""What Marathon says of apps, its queue and its deployments, as reasons for people and decisions about locks."""

from __future__ import annotations

import pytest

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_marathon.app_states import creates, holder, observation, queue_reason

_ID = "/heron/words/container-1"
_FAILURE: Json = {"state": "TASK_FAILED", "host": "a1", "message": "Container exited with status 127"}


def _app(*states: str, failure: Json | None = None) -> Json:
    tasks: list[Json] = [{"id": f"t{number}", "state": each, "host": "a1"} for number, each in enumerate(states)]
    return {"id": _ID, "tasks": tasks, **({"lastTaskFailure": failure} if failure else {})}


def _queued(**fields: object) -> Json:
    return {"app": {"id": _ID}, "count": 1, "delay": {"timeLeftSeconds": 0, "overdue": True}, **fields}


def test_a_running_task_is_up_with_its_last_failure() -> None:
    """`heron status` shows why it was started again."""
    assert observation(_app("TASK_RUNNING"), ()) == Observation(up=True, where="a1", host="a1")
    again = observation(_app("TASK_RUNNING", failure=_FAILURE), ())
    assert again == Observation(True, "a1", "TASK_FAILED on a1: Container exited with status 127", "a1")


def test_an_app_without_a_task_says_what_it_waits_for() -> None:
    """The words are those of Marathon's queue, of this app alone."""
    steps = [
        {"reason": "InsufficientMemory", "declined": 2, "processed": 3},
        {"reason": "UnfulfilledConstraint", "declined": 1, "processed": 1},
        {"reason": "InsufficientCpus", "declined": 0, "processed": 3},
    ]
    queue = [
        {"app": {"id": "/other"}, "delay": {"timeLeftSeconds": 90}},
        _queued(processedOffersSummary={"processedOffersCount": 3, "rejectSummaryLastOffers": steps}),
    ]
    seen = observation(_app(), queue)
    assert not seen.up
    assert seen.reason == "no agent fits (InsufficientMemory: 2 of 3, UnfulfilledConstraint: 1 of 1 offers declined)"


def test_no_offer_and_a_back_off_are_reasons_too() -> None:
    """Without offers, Marathon's summary is empty; after failures, it waits longer each time."""
    assert queue_reason(_queued(processedOffersSummary={"processedOffersCount": 0})) == "no agent has offered resources"
    assert queue_reason(_queued(delay={"timeLeftSeconds": 7})) == "marathon waits 7 s before the next start"
    assert queue_reason(_queued(processedOffersSummary={"processedOffersCount": 2})) == ""
    seen = observation(_app(failure=_FAILURE), [_queued(delay={"timeLeftSeconds": 7})])
    assert (
        seen.reason == "TASK_FAILED on a1: Container exited with status 127; marathon waits 7 s before the next start"
    )


def test_an_unreachable_agent_is_named_until_the_container_runs_elsewhere() -> None:
    """Marathon lists the lost task beside its replacement."""
    lost = observation(_app("TASK_UNREACHABLE"), [])
    assert lost == Observation(False, "a1", "agent a1 is unreachable", "a1")
    assert observation(_app("TASK_UNREACHABLE", "TASK_RUNNING"), []).up


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (["StartApplication", "ScaleApplication"], True),
        (["StartApplication"], True),
        (["StopApplication"], False),
        (["StartApplication", "StopApplication"], False),
        (["ScaleApplication"], False),
        (["RestartApplication"], False),
        ([], False),
    ],
)
def test_only_a_deployment_that_starts_apps_may_be_reverted(actions: list[str], *, expected: bool) -> None:
    """The reversal of a stop would start containers again, and one of a change by a person would undo it."""
    steps = [{"actions": [{"action": each, "app": _ID}]} for each in actions]
    assert creates({"id": "d", "affectedApps": [_ID], "steps": steps}) == expected


def test_the_holder_of_a_lock_is_named() -> None:
    """A person finds the deployment in Marathon by its id."""
    assert holder({"id": "d1", "affectedApps": ["/b", "/a"]}) == "deployment d1 of /a, /b"
