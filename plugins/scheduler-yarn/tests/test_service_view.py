"""Services as YARN shows them, from answers of Hadoop 3.4.2."""

from __future__ import annotations

from heron_scheduler_kit.managed.cluster import Observation
from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_yarn.service_view import YarnContainer, containers_of, diagnostics, observation, printed_lines

_READY: Json = {"id": "container_1_01_000002", "state": "READY", "launch_time": 5, "bare_host": "node-a"}
_NO_ROOM = "Queue does not have enough headroom for inner highest-priority request"


def _service(*containers: Json) -> Json:
    components: list[object] = [
        {"name": "container-0", "containers": [_READY]},
        {"name": "container-3", "containers": list(containers)},
    ]
    return {"name": "heron-t-1", "state": "STARTED", "components": components}


def _why(last: YarnContainer | None) -> list[str]:
    return [_NO_ROOM if last is None else "No module\nnamed heron"]


def test_a_ready_container_is_up_on_its_host() -> None:
    """A launcher runs there; what it says is not asked."""
    assert observation("0", _service(), _why) == Observation(up=True, where="node-a")


def test_a_container_that_is_awaited_has_the_words_of_yarn() -> None:
    """The state of the service, and why its scheduler gives nothing."""
    assert observation("3", _service(), _why).reason == f"service heron-t-1 is STARTED; {_NO_ROOM}"


def test_the_newest_container_of_a_place_counts() -> None:
    """A failed one is replaced; until then it has the last line of its process."""
    failed: Json = {"id": "container_1_01_000004", "state": "FAILED", "launch_time": 9, "bare_host": "node-b"}
    older: Json = {**_READY, "launch_time": 3}
    seen = observation("3", _service(failed, older), _why)
    assert (seen.up, seen.where) == (False, "node-b")
    assert seen.reason.endswith("container_1_01_000004 on node-b is FAILED; No module named heron")


def test_a_service_whose_master_does_not_run_has_no_container() -> None:
    """YARN then shows no components."""
    accepted: Json = {"name": "heron-t-1", "state": "ACCEPTED", "components": []}
    assert containers_of(accepted) == ()
    assert not observation("0", accepted, lambda _: []).up


def test_each_reason_of_the_scheduler_is_said_once() -> None:
    """YARN repeats it for each node and each heartbeat."""
    rejected = {"children": [{"diagnostic": _NO_ROOM}, {"diagnostic": _NO_ROOM}]}
    assert diagnostics({"appActivities": {"allocations": [rejected, rejected]}}) == [_NO_ROOM]
    assert diagnostics({"appActivities": {"diagnostic": "waiting for display"}}) == []


def test_output_is_without_the_words_of_the_node_manager() -> None:
    """A node manager frames what it shows; a log of another form stays as it is."""
    shown = (
        "Container: c\nLogContents:\none\ntwo\n\nEnd of LogType:stdout.txt.This log file belongs to a running\n***\n"
    )
    assert printed_lines(shown) == ["one", "two", ""]
    assert printed_lines("one\ntwo\n") == ["one", "two"]
