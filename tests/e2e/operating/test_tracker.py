"""`heron tracker` on real topologies: two clusters, a killed task, a state manager that goes away, and the end."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

from heron_testing.waiting import wait_until
from tracker_process import TrackerProcess

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

FAR = """
extends: local
scheduler:
  driver: local
  root: {root}/far/jobs
statemgr:
  driver: localfs
  root: {root}/far/state
"""


def two_profiles(sandbox: Sandbox) -> None:
    """Write a second profile with its own state and jobs."""
    folder = sandbox.home / ".heron" / "profiles"
    folder.mkdir(parents=True)
    (folder / "far.yaml").write_text(FAR.format(root=sandbox.root), encoding="utf-8")


def live(tracker: TrackerProcess, place: str) -> bool:
    """Whether all tasks run and the topology's plans and metrics are known."""
    answer = tracker.ask(f"{place}/physical-plan")
    if answer.status_code != 200:
        return False
    tasks = answer.json()["tasks"]
    rows = tracker.get(f"{place}/metrics?name=execute-count")["items"]
    return bool(tasks) and all(each["state"] == "running" for each in tasks) and any(row["value"] for row in rows)


def heron_paths_agree(tracker: TrackerProcess, place: str) -> None:
    """Check that the paths of Heron Tracker tell the same about the topology of the cluster `far`."""
    item = tracker.get(place)["topology"]
    one = f"cluster=far&environ={item['env']}&topology=steady"
    assert tracker.get("/topologies")["far"] == {item["role"]: {item["env"]: ["steady"]}}
    info = tracker.get(f"/topologies/info?{one}")
    assert info["execution_state"]["status"] == "Running"
    assert info["logical_plan"]["stages"] == 3
    instances = info["physical_plan"]["instances"]
    assert len(instances) == info["metadata"]["instances"] == 4
    tasks = set(info["physical_plan"]["bolts"]["pass"])

    def have_counts() -> bool:
        counts = tracker.get(f"/topologies/metrics?{one}&component=pass&metricname=__execute-count/default")["metrics"]
        found = counts.get("__execute-count/default", {})  # no task has reported one yet
        return set(found) == tasks and all(float(value) > 0 for value in found.values())

    wait_until(have_counts, 60.0, "the counts of each task")


@pytest.mark.guarantee
def test_the_tracker_follows_topologies_of_two_clusters(sandbox: Sandbox) -> None:
    """One name in both: each has its own values. A killed task is an event; the end of one leaves the other.

    Guarantee: the tracker follows topologies of several clusters, by its API and Heron's.

    Guarantee: the history of the tracker outlives tracker and topology.
    """
    two_profiles(sandbox)
    near = sandbox.start("steady.py")
    far = sandbox.start("steady.py", "--profile", "far")
    tracker = TrackerProcess(sandbox, "--profile", "local", "--profile", "far")
    places = {name: f"/api/v1/clusters/{name}/topologies/steady" for name in ("local", "far")}
    wait_until(lambda: {tracker.state(name, "steady") for name in places} == {"running"}, 60.0, "both topologies")
    for place in places.values():
        wait_until(lambda place=place: live(tracker, place), 60.0, place)  # type: ignore[misc]
    ids = {tracker.get(place)["status"]["topology_id"] for place in places.values()}
    assert len(ids) == 2
    plan = tracker.get(f"{places['local']}/logical-plan")
    packing = tracker.get(f"{places['local']}/packing-plan")
    placed = sum(len(each["tasks"]) for each in packing["containers"])
    assert placed == sum(each["parallelism"] for each in plan["components"])
    heron_paths_agree(tracker, places["far"])
    with httpx.stream("GET", f"{tracker.url}{places['local']}/live", timeout=20.0) as stream:
        values = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        emitted = (sum(each["emitted"] for each in value["status"]["components"]) for value in values)
        first = next(emitted)
        assert next(count for count in emitted if count != first) > first

    psutil.Process(tracker.get(f"{places['local']}/physical-plan")["tasks"][0]["pid"]).kill()
    wait_until(lambda: "process-restarted" in tracker.kinds(places["local"]), 60.0, "the event of the death")
    assert "process-restarted" not in tracker.kinds(places["far"])

    (near.out / "stop").touch()
    near.finished()
    wait_until(lambda: tracker.state("local", "steady") in {"", "finished"}, 30.0, "the end in the list")
    assert tracker.state("far", "steady") == "running"
    assert live(tracker, places["far"])
    outlives_tracker_and_topology(sandbox, tracker, far, places["far"])


def outlives_tracker_and_topology(sandbox: Sandbox, tracker: TrackerProcess, far: HeronRun, place: str) -> None:
    """A second tracker shows what the first one has recorded, also after the end of the topology."""

    def rates(of: TrackerProcess) -> list[float]:
        found = of.get(f"{place}/history?component=numbers&metric=emit-count")
        assert found["error"] == ""
        return [point["value"] for series in found["series"] for point in series["points"]]

    wait_until(lambda: sum(rate > 0 for rate in rates(tracker)) >= 3, 60.0, "three seconds with tuples")
    tracker.run.process.terminate()
    assert tracker.run.wait(20.0) == 0, tracker.run.all_output
    (far.out / "stop").touch()
    far.finished()
    second = TrackerProcess(sandbox, "--profile", "far")
    wait_until(lambda: second.state("far", "steady") in {"", "finished"}, 30.0, "the end")
    recorded = rates(second)
    assert sum(rate > 0 for rate in recorded) >= 3
    assert all(0 <= rate < 100_000 for rate in recorded)


def test_a_state_manager_that_is_away_stops_only_the_list_of_its_cluster(sandbox: Sandbox) -> None:
    """The other cluster stays live; the answer says why and how old the list is; then everything comes back."""
    two_profiles(sandbox)
    state = sandbox.root / "far" / "state"
    state.parent.mkdir()
    state.write_text("no folder", encoding="utf-8")
    run = sandbox.start("steady.py")
    tracker = TrackerProcess(sandbox, "--profile", "far", "--profile", "local")
    place = "/api/v1/clusters/local/topologies/steady"
    wait_until(lambda: tracker.state("local", "steady") == "running" and live(tracker, place), 60.0, "the topology")

    def away() -> dict[str, Any]:
        return {each["name"]: each for each in tracker.get("/api/v1/topologies")["away"]}

    wait_until(lambda: "far" in away() and away()["far"]["error"] != "it has not answered yet", 30.0, "the reason")
    assert str(state) in away()["far"]["error"]
    assert away()["far"]["age_s"] is None
    assert tracker.get("/health")["clusters_away"] == ["far"]
    state.unlink()
    wait_until(lambda: not away(), 30.0, "the cluster that is back")
    (run.out / "stop").touch()
    run.finished()


def test_a_client_that_never_reads_costs_the_others_nothing(sandbox: Sandbox) -> None:
    """Fifty streams whose clients read nothing; answers stay quick, and memory does not grow with the time."""
    run = sandbox.start("steady.py")
    tracker = TrackerProcess(sandbox)
    place = "/api/v1/clusters/local/topologies/steady"
    wait_until(lambda: tracker.state("local", "steady") == "running" and live(tracker, place), 60.0, "the topology")
    host, port = tracker.url.removeprefix("http://").split(":")
    request = f"GET {place}/live HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    clients = [socket.create_connection((host, int(port))) for _ in range(50)]
    try:
        for each in clients:
            each.sendall(request)
        first = tracker.get(place)["status"]["components"]
        wait_until(lambda: tracker.get(place)["status"]["components"] != first, 30.0, "newer values")
        assert live(tracker, place)
    finally:
        for each in clients:
            with closing(each):
                pass
    (run.out / "stop").touch()
    run.finished()


def test_ctrl_c_ends_the_tracker_while_streams_are_open(sandbox: Sandbox) -> None:
    """The exit code is 0, and no thread keeps the process."""
    run = sandbox.start("steady.py")
    tracker = TrackerProcess(sandbox)
    place = "/api/v1/clusters/local/topologies/steady"
    wait_until(lambda: tracker.state("local", "steady") == "running", 60.0, "the topology")
    with httpx.stream("GET", f"{tracker.url}{place}/live", timeout=20.0) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: topology"
        tracker.run.process.terminate()
        assert tracker.run.wait(20.0) == 0, tracker.run.all_output
    (run.out / "stop").touch()
    run.finished()
