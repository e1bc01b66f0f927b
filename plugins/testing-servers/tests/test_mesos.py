"""The Mesos server keeps the published contract of the scheduler HTTP API v1, as far as its README says."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from heron_testing.waiting import Eventually
from heron_testing_servers.http_service import Fault
from heron_testing_servers.mesos import MesosCluster, attribute, resources

pytestmark = pytest.mark.servers

Json = dict[str, Any]
Clusters = Callable[..., MesosCluster]
Frameworks = Callable[..., "Framework"]

WAIT_S = 60.0
PARTITION_AWARE = [{"type": "PARTITION_AWARE"}]


class Framework:
    """A framework of a test: a subscription, whose events a thread reads, and calls."""

    def __init__(self, cluster: MesosCluster, auth: tuple[str, str] | None = None, **info: object) -> None:
        self.info: Json = {"user": "nobody", "name": "test", "failover_timeout": 60.0, **info}
        self.http = httpx.Client(base_url=cluster.url, auth=auth, timeout=WAIT_S)
        self.events: queue.Queue[Json] = queue.Queue()
        self.id: Json = {}
        self.stream = ""
        self._subscriptions: list[tuple[httpx.Response, threading.Thread]] = []

    def subscribe(self) -> Json:
        """Subscribe, and return SUBSCRIBED, or the ERROR in its place."""
        call: Json = {"type": "SUBSCRIBE", "subscribe": {"framework_info": dict(self.info)}}
        if self.id:
            call["framework_id"] = call["subscribe"]["framework_info"]["id"] = self.id
        answer = self.http.send(self.http.build_request("POST", "/api/v1/scheduler", json=call), stream=True)
        assert answer.status_code == 200, answer.read()
        self.stream = answer.headers["mesos-stream-id"]
        self.events = queue.Queue()
        thread = threading.Thread(target=_read, args=(answer, self.events))
        thread.start()
        self._subscriptions.append((answer, thread))
        first = self.events.get(timeout=WAIT_S)
        self.id = first.get("subscribed", {}).get("framework_id", self.id)
        return first

    def disconnect(self) -> None:
        """Close the connections of all subscriptions."""
        for answer, thread in self._subscriptions:
            with contextlib.suppress(OSError):  # it has ended
                answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            thread.join()
        self._subscriptions.clear()

    def end(self) -> None:
        """Tear it down if it is there, and close all connections."""
        with contextlib.suppress(httpx.HTTPError):
            self.call("TEARDOWN")
        self.disconnect()
        self.http.close()

    def call(self, kind: str, *, stream: str | None = None, **body: object) -> httpx.Response:
        message: Json = {"type": kind, "framework_id": self.id}
        if body or kind == "RECONCILE":
            message[kind.lower()] = body
        stream = self.stream if stream is None else stream
        return self.http.post("/api/v1/scheduler", json=message, headers={"Mesos-Stream-Id": stream} if stream else {})

    def next(self, kind: str, meets: Callable[[Json], bool] = lambda _: True) -> Json:
        """Return the body of the next event of a kind."""
        while True:
            event = self.events.get(timeout=WAIT_S)
            assert event["type"] == kind or event["type"] != "END", f"the stream ended before {kind}"
            body = event.get(kind.lower(), {})
            if event["type"] == kind and meets(body):
                return dict(body)

    def is_left_alone(self) -> bool:
        """Return whether nothing comes between two heartbeats."""
        return [self.next("HEARTBEAT") for _ in range(2)] == [{}, {}] and self.events.empty()

    def offers(self, count: int = 1) -> list[Json]:
        found: list[Json] = []
        while len(found) < count:
            found += self.next("OFFERS")["offers"]
        return found

    def accept(self, offer: Json, *tasks: Json, refuse_s: float = 5.0) -> httpx.Response:
        infos = [{"agent_id": offer["agent_id"], **each} for each in tasks]
        launch = {"type": "LAUNCH", "launch": {"task_infos": infos}}
        return self.call("ACCEPT", offer_ids=[offer["id"]], operations=[launch], filters={"refuse_seconds": refuse_s})

    def status(self, task: str, *, acknowledge: bool = True) -> Json:
        """Return the next update of a task."""
        found = dict(self.next("UPDATE", lambda body: body["status"]["task_id"]["value"] == task)["status"])
        if acknowledge and "uuid" in found:
            self.acknowledge(found)
        return found

    def acknowledge(self, status: Json) -> None:
        fields: Json = {name: status[name] for name in ("agent_id", "task_id", "uuid")}
        assert self.call("ACKNOWLEDGE", **fields).status_code == 202

    def run(self, task: str, command: object, **more: object) -> Json:
        """Launch a task on the first offer, and return the offer when the task runs."""
        offer = self.offers()[0]
        self.accept(offer, task_info(task, command, 1.0, **more))
        assert [self.status(task)["state"] for _ in range(2)] == ["TASK_STARTING", "TASK_RUNNING"]
        return offer


def _read(answer: httpx.Response, events: queue.Queue[Json]) -> None:
    """Put the records of an answer into a queue, and END behind them."""
    data = b""
    try:
        for part in answer.iter_raw():
            data += part
            while b"\n" in data and len(data.partition(b"\n")[2]) >= int(data.partition(b"\n")[0]):
                size, _, rest = data.partition(b"\n")
                events.put(json.loads(rest[: int(size)]))
                data = rest[int(size) :]
    except (httpx.HTTPError, httpx.StreamError):
        pass  # the connection has ended
    finally:
        answer.close()
        events.put({"type": "END"})


def task_info(task: str, command: object, cpus: float = 1.0, **more: object) -> Json:
    info = command if isinstance(command, dict) else {"value": command}
    wanted = [{"name": "cpus", "type": "SCALAR", "scalar": {"value": cpus}}]
    return {"name": task, "task_id": {"value": task}, "command": info, "resources": wanted, **more}


@pytest.fixture
def frameworks() -> Iterator[Frameworks]:
    """Make frameworks that are torn down."""
    made: list[Framework] = []

    def make(cluster: MesosCluster, auth: tuple[str, str] | None = None, **info: object) -> Framework:
        made.append(Framework(cluster, auth, **info))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def framework(mesos: MesosCluster, frameworks: Frameworks) -> Framework:
    """A subscribed framework that is torn down."""
    made = frameworks(mesos)
    made.subscribe()
    return made


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Clusters]:
    """Make clusters of the test's own."""
    made: list[MesosCluster] = []

    def make(**options: Any) -> MesosCluster:  # noqa: ANN401 - those of the class
        made.append(MesosCluster(tmp_path / f"cluster-{len(made)}", **options))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.kill()


def sandbox(cluster: MesosCluster, framework: Framework, offer: Json, task: str, name: str = "stdout") -> str:
    agent = next(each for each in cluster.agents().values() if each["id"] == offer["agent_id"]["value"])
    path = f"/frameworks/{framework.id['value']}/executors/{task}/runs/latest/{name}"
    return str(httpx.get(f"{agent['url']}/files/read", params={"path": path, "offset": 0}).json()["data"])


def test_calls_need_the_present_stream(mesos: MesosCluster, framework: Framework, frameworks: Frameworks) -> None:
    """400 without a stream id or with a stale one, 403 without a subscription, as the master of Mesos answers."""
    assert framework.call("REVIVE").status_code == 202
    assert "should include the 'Mesos-Stream-Id' header" in framework.call("REVIVE", stream="").text
    assert "didn't match the stream ID" in framework.call("REVIVE", stream="other").text
    assert "Expecting 'accept' to be present" in framework.call("ACCEPT").text
    assert [framework.call(kind, task={}).status_code for kind in ("BREW", "KILL")] == [400, 400]
    unknown = frameworks(mesos)
    unknown.id = {"value": "unknown"}
    assert unknown.call("REVIVE", stream="x").text == "Framework cannot be found"


def test_offers_have_resources_and_attributes_and_are_used_up(framework: Framework) -> None:
    """What a task has is not offered again until it has ended; the rest is, after its filter."""
    both = framework.offers(2)
    assert {each["attributes"][0]["text"]["value"] for each in both} == {"a", "b"}
    offer = both[0]
    amounts = {each["name"]: each for each in offer["resources"]}
    assert amounts["cpus"]["scalar"]["value"] == 8.0
    ports = [each["ranges"]["range"] for at in both for each in at["resources"] if each["name"] == "ports"]
    assert [at[0]["end"] - at[0]["begin"] for at in ports] == [99, 99]
    assert ports[0] != ports[1], "the agents are on one machine"
    assert offer["url"]["address"]["ip"] == offer["hostname"]
    framework.accept(offer, task_info("one", "exec sleep 60", 6.0), refuse_s=0)
    rest = framework.offers()[0]
    assert [each["scalar"]["value"] for each in rest["resources"] if each["name"] == "cpus"] == [2.0]
    framework.accept(rest, task_info("two", "exec sleep 60", 3.0))
    refused = framework.status("two")
    assert (refused["state"], refused["reason"]) == ("TASK_ERROR", "REASON_TASK_INVALID")
    assert "more resources cpus(*):3 than available cpus(*):2" in refused["message"]


def test_an_offer_that_was_answered_is_invalid(framework: Framework) -> None:
    """The same offer cannot be accepted twice."""
    offer = framework.offers()[0]
    framework.call("DECLINE", offer_ids=[offer["id"]], filters={"refuse_seconds": 0})
    framework.accept(offer, task_info("late", "true"))
    lost = framework.status("late")
    assert (lost["state"], lost["reason"], "uuid" in lost) == ("TASK_LOST", "REASON_INVALID_OFFERS", False)


def test_filters_hold_offers_back_until_revive(cluster: Clusters, frameworks: Frameworks) -> None:
    """`refuse_seconds` and SUPPRESS hold offers back, REVIVE ends both; the stream has heartbeats all the time."""
    framework = frameworks(cluster(times={"heartbeat_s": 0.2}))
    framework.subscribe()
    ids = [each["id"] for each in framework.offers(2)]
    framework.call("DECLINE", offer_ids=ids, filters={"refuse_seconds": 3600})
    assert framework.is_left_alone()
    framework.call("REVIVE")
    ids = [each["id"] for each in framework.offers(2)]
    framework.call("SUPPRESS")
    framework.call("DECLINE", offer_ids=ids, filters={"refuse_seconds": 0})
    assert framework.is_left_alone()
    framework.call("REVIVE")
    framework.offers(2)


def test_tasks_are_processes_with_their_environment_and_sandbox(mesos: MesosCluster, framework: Framework) -> None:
    """A shell command and an argv; stdout is read from the agent."""
    variables = {"variables": [{"name": "GREETING", "type": "VALUE", "value": "hello"}]}
    offer = framework.run("shell", {"value": "echo $GREETING $MESOS_TASK_ID; exit 3", "environment": variables})
    failed = framework.status("shell")
    assert (failed["state"], failed["message"]) == ("TASK_FAILED", "Command exited with status 3")
    assert sandbox(mesos, framework, offer, "shell") == "hello shell\n"
    framework.call("REVIVE")
    offer = framework.run("argv", {"shell": False, "value": "/bin/echo", "arguments": ["echo", "$HOME"]})
    assert framework.status("argv")["state"] == "TASK_FINISHED"
    assert sandbox(mesos, framework, offer, "argv") == "$HOME\n"
    (agent,) = (each for each in mesos.agents().values() if each["id"] == offer["agent_id"]["value"])
    assert httpx.get(f"{agent['url']}/files/read", params={"path": "/etc/passwd"}).status_code == 404
    found = httpx.get(f"{agent['url']}/state").json()["frameworks"]
    (mine,) = (each for each in found if each["id"] == framework.id["value"])
    (directory,) = (each["directory"] for each in mine["completed_executors"] if each["id"] == "argv")
    names = {
        Path(each["path"]).name for each in httpx.get(f"{agent['url']}/files/browse", params={"path": directory}).json()
    }
    assert names == {"stdout", "stderr"}


def test_files_are_fetched_into_the_sandbox(mesos: MesosCluster, framework: Framework, tmp_path: Path) -> None:
    """Archives are unpacked; a task whose file is missing fails."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "text").write_text("hello\n")
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", tmp_path / "in")
    offer = framework.run("one", {"value": "cat text", "uris": [{"value": archive}]})
    assert framework.status("one")["state"] == "TASK_FINISHED"
    assert sandbox(mesos, framework, offer, "one") == "hello\n"
    framework.call("REVIVE")
    missing = {"value": "true", "uris": [{"value": f"file://{tmp_path}/missing"}]}
    framework.accept(framework.offers()[0], task_info("two", missing))
    failed = framework.status("two")
    assert (failed["state"], failed["reason"]) == ("TASK_FAILED", "REASON_CONTAINER_LAUNCH_FAILED")


def test_updates_are_sent_again_until_they_are_acknowledged(cluster: Clusters, frameworks: Frameworks) -> None:
    """The next update waits for the acknowledgement of the one before."""
    framework = frameworks(cluster(times={"retry_s": 0.2}))
    framework.subscribe()
    framework.accept(framework.offers()[0], task_info("one", "true"))
    first = framework.status("one", acknowledge=False)
    again = framework.status("one", acknowledge=False)
    assert (first["state"], again["uuid"]) == ("TASK_STARTING", first["uuid"])
    framework.acknowledge(first)
    assert framework.status("one")["state"] == "TASK_RUNNING"
    assert framework.status("one")["state"] == "TASK_FINISHED"


def test_kill_sends_sigterm_and_then_sigkill(
    mesos: MesosCluster, frameworks: Frameworks, eventually: Eventually
) -> None:
    """TASK_KILLING comes to frameworks that know it; a kill may shorten the grace time of an earlier one."""
    framework = frameworks(mesos, capabilities=[{"type": "TASK_KILLING_STATE"}])
    framework.subscribe()
    policy = {"grace_period": {"nanoseconds": 60 * 10**9}}
    offer = framework.run("rude", "trap '' TERM; echo ready; sleep 600", kill_policy=policy)
    eventually(lambda: sandbox(mesos, framework, offer, "rude") == "ready\n", what="the trap is set")
    framework.call("KILL", task_id={"value": "rude"}, agent_id=offer["agent_id"])
    assert framework.status("rude")["state"] == "TASK_KILLING"
    framework.call("KILL", task_id={"value": "rude"}, kill_policy={"grace_period": {"nanoseconds": 0}})
    killed = framework.status("rude")
    assert (killed["state"], killed["message"]) == ("TASK_KILLED", "Command terminated with signal Killed")
    framework.call("KILL", task_id={"value": "rude"})
    assert framework.status("rude")["state"] == "TASK_LOST"


def test_a_task_ends_after_its_longest_time_or_by_its_agent(mesos: MesosCluster, framework: Framework) -> None:
    """Two failures."""
    framework.run("long", "exec sleep 600", max_completion_time={"nanoseconds": 10**7})
    assert framework.status("long")["reason"] == "REASON_MAX_COMPLETION_TIME_REACHED"
    framework.call("REVIVE")
    framework.run("big", "exec sleep 600")
    mesos.fail_task("big", "REASON_CONTAINER_LIMITATION_MEMORY", "Memory limit exceeded")
    failed = framework.status("big")
    assert (failed["state"], failed["reason"]) == ("TASK_FAILED", "REASON_CONTAINER_LIMITATION_MEMORY")


def test_reconciliation_tells_the_state_of_known_and_unknown_tasks(framework: Framework) -> None:
    """Without tasks: of all that are known."""
    offer = framework.run("one", "exec sleep 600")
    framework.call("RECONCILE")
    implicit = framework.status("one")
    assert (implicit["state"], implicit["reason"]) == ("TASK_RUNNING", "REASON_RECONCILIATION")
    unknown = {"task_id": {"value": "unknown"}}
    framework.call("RECONCILE", tasks=[{"task_id": {"value": "one"}, "agent_id": offer["agent_id"]}, unknown])
    assert framework.status("one")["state"] == "TASK_RUNNING"
    assert framework.status("unknown")["state"] == "TASK_LOST"


def test_a_second_subscription_ends_the_first(
    mesos: MesosCluster, framework: Framework, frameworks: Frameworks
) -> None:
    """The scheduler that came back has the id, its tasks and the right to call."""
    framework.run("one", "exec sleep 600")
    other = frameworks(mesos)
    other.id = framework.id
    assert other.subscribe()["subscribed"]["framework_id"] == framework.id
    assert framework.next("ERROR") == {"message": "Framework failed over"}
    framework.next("END")
    assert framework.call("REVIVE").status_code == 400
    other.call("RECONCILE")
    assert other.status("one")["state"] == "TASK_RUNNING"


def test_a_framework_that_stays_away_is_torn_down(
    mesos: MesosCluster, frameworks: Frameworks, eventually: Eventually
) -> None:
    """After `failover_timeout` its tasks are killed, and its id is worth nothing."""
    framework = frameworks(mesos, failover_timeout=0.5)
    framework.subscribe()
    framework.run("one", "exec sleep 600")
    pid = mesos.containers()["one"]
    framework.disconnect()
    eventually(lambda: not os.path.exists(f"/proc/{pid}"), what="the task is killed")
    assert framework.subscribe() == {"type": "ERROR", "error": {"message": "Framework has been removed"}}
    assert framework.id["value"] in {each["id"] for each in mesos.state()["completed_frameworks"]}


def test_tasks_of_a_lost_agent(cluster: Clusters, frameworks: Frameworks) -> None:
    """A partition: unreachable, and back. A lost machine: its tasks have failed when it is back."""
    made = cluster()
    framework = frameworks(made, capabilities=PARTITION_AWARE)
    framework.subscribe()
    offer = framework.run("one", "exec sleep 600")
    name = next(name for name, each in made.agents().items() if each["id"] == offer["agent_id"]["value"])
    pid = made.containers()["one"]
    for mode, state in (("partitioned", "TASK_RUNNING"), ("down", "TASK_FAILED")):
        made.change_agent(name, mode)
        lost = framework.status("one")
        assert (lost["state"], lost["reason"]) == ("TASK_UNREACHABLE", "REASON_SLAVE_REMOVED")
        assert framework.next("FAILURE")["agent_id"] == offer["agent_id"]
        framework.call("RECONCILE", tasks=[{"task_id": {"value": "one"}, "agent_id": offer["agent_id"]}])
        assert framework.status("one")["state"] == "TASK_UNREACHABLE"
        made.change_agent(name, "up")
        back = framework.status("one")
        assert (back["state"], back["reason"]) == (state, "REASON_SLAVE_REREGISTERED")
        assert os.path.exists(f"/proc/{pid}") == (mode == "partitioned")
    assert framework.status("one")["reason"] == "REASON_EXECUTOR_TERMINATED"


def test_a_launch_on_an_agent_that_is_not_reached_is_lost(cluster: Clusters, frameworks: Frameworks) -> None:
    """The framework hears of it when the agent is back."""
    made = cluster(agents=[(resources(4, 1024), [])], times={"unreachable_s": 3600})
    framework = frameworks(made, capabilities=PARTITION_AWARE)
    framework.subscribe()
    offer = framework.offers()[0]
    made.change_agent("agent-0", "partitioned")
    framework.accept(offer, task_info("one", "true"))
    made.change_agent("agent-0", "up")
    assert framework.status("one")["state"] == "TASK_DROPPED"


def test_offers_of_a_lost_agent_are_rescinded_and_it_may_be_gone(cluster: Clusters, frameworks: Frameworks) -> None:
    """RESCIND names the offer; TASK_GONE_BY_OPERATOR is final."""
    made = cluster(agents=[(resources(4, 1024), [])])
    framework = frameworks(made, capabilities=PARTITION_AWARE)
    framework.subscribe()
    offer = framework.offers()[0]
    made.change_agent("agent-0", "partitioned")
    assert framework.next("RESCIND") == {"offer_id": offer["id"]}
    made.change_agent("agent-0", "up")
    framework.run("one", "exec sleep 600")
    gone = {"type": "MARK_AGENT_GONE", "mark_agent_gone": {"agent_id": offer["agent_id"]}}
    assert httpx.post(f"{made.url}/api/v1", json=gone).status_code == 200
    assert framework.status("one")["state"] == "TASK_GONE_BY_OPERATOR"


def test_a_restarted_master_learns_tasks_from_agents(cluster: Clusters, frameworks: Frameworks) -> None:
    """Streams break; tasks run on; the framework comes back with its id and reconciles."""
    made = cluster()
    framework = frameworks(made)
    framework.subscribe()
    offer = framework.run("one", "exec sleep 600")
    pid = made.containers()["one"]
    made.process.kill()
    framework.next("END")
    made.start()
    assert framework.call("REVIVE").status_code == 403
    framework.subscribe()
    framework.call("RECONCILE")
    assert framework.status("one")["state"] == "TASK_RUNNING"
    assert made.containers() == {"one": pid}
    framework.call("KILL", task_id={"value": "one"}, agent_id=offer["agent_id"])
    assert framework.status("one")["state"] == "TASK_KILLED"


def test_another_master_redirects_and_takes_over(
    cluster: Clusters, frameworks: Frameworks, eventually: Eventually
) -> None:
    """307 with the address of the leader; behind a failover the other master is the leader."""
    made = cluster()
    standby, url = made.standby()
    standby.start()
    try:
        answer = httpx.get(f"{url}/state")
        assert (answer.status_code, answer.headers["location"]) == (307, f"{made.url.removeprefix('http:')}/state")
        framework = frameworks(made)
        framework.subscribe()
        framework.run("one", "exec sleep 600")
        made.process.kill()
        eventually(lambda: httpx.get(f"{url}/state").status_code == 200, what="the other master leads")
        framework.http.base_url = url
        framework.subscribe()
        framework.call("RECONCILE")
        assert framework.status("one")["state"] == "TASK_RUNNING"
        made.process.start()
        assert httpx.get(f"{made.url}/state").status_code == 307
    finally:
        standby.kill()


def test_principals_and_roles(cluster: Clusters, frameworks: Frameworks) -> None:
    """401 without credentials, an ERROR for a role, a TASK_ERROR for a user, 403 for files; reserved resources."""
    users = {"streams": {"secret": "s", "roles": ["streams"], "users": ["streams"], "read_files": False}}
    amounts = resources(2, 1024) + resources(3, 2048, role="streams") + resources(5, 4096, role="other")
    made = cluster(agents=[(amounts, [attribute("rack", "a")])], users=users)
    nobody = httpx.post(f"{made.url}/api/v1/scheduler", json={}, auth=("streams", "wrong"))
    assert (nobody.status_code, "mesos-master-scheduler" in nobody.headers["www-authenticate"]) == (401, True)
    auth = ("streams", "s")
    refused = frameworks(made, auth=auth, role="other").subscribe()
    assert refused == {"type": "ERROR", "error": {"message": "Not authorized to use roles '{ other }'"}}
    capabilities = [{"type": "MULTI_ROLE"}, {"type": "RESERVATION_REFINEMENT"}]
    framework = frameworks(made, auth=auth, roles=["streams"], capabilities=capabilities)
    framework.subscribe()
    offer = framework.offers()[0]
    cpus = [each for each in offer["resources"] if each["name"] == "cpus"]
    assert sorted((each["scalar"]["value"], len(each.get("reservations", ()))) for each in cpus) == [(2.0, 0), (3.0, 1)]
    assert offer["allocation_info"] == {"role": "streams"}
    framework.accept(offer, task_info("one", "true"), refuse_s=0)
    assert framework.status("one")["reason"] == "REASON_TASK_UNAUTHORIZED"
    own = {**task_info("two", {"value": "exec sleep 60", "user": "streams"}), "resources": offer["resources"]}
    framework.accept(framework.offers()[0], own)
    assert framework.status("two")["state"] == "TASK_STARTING"
    url = made.agents()["agent-0"]["url"]
    assert httpx.get(f"{url}/files/read?path=/", auth=auth).status_code == 403
    assert made.state()["frameworks"][0]["tasks"][0]["id"] == "two"


def test_an_answer_that_is_lost_and_a_refused_call(mesos: MesosCluster, framework: Framework) -> None:
    """The task of an ACCEPT without an answer runs; the faults are named by the type of a call."""
    offer = framework.offers()[0]
    mesos.fault(Fault("ACCEPT", "drop"))
    with pytest.raises(httpx.RemoteProtocolError):
        framework.accept(offer, task_info("one", "exec sleep 60"))
    assert framework.status("one")["state"] == "TASK_STARTING"
    mesos.fault(Fault("REVIVE", "refuse"))
    assert [framework.call("REVIVE").status_code for _ in range(2)] == [503, 202]
    mesos.fault(Fault("SUBSCRIBE", "drop"))
    with pytest.raises(httpx.RemoteProtocolError):
        framework.subscribe()
    framework.subscribe()
