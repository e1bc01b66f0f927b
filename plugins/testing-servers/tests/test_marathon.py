"""The Marathon for tests keeps the published contract: what a client of a real one relies on."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from heron_testing.waiting import Eventually
from heron_testing_servers.http_service import Fault
from heron_testing_servers.marathon import MarathonServer

pytestmark = pytest.mark.servers

Json = dict[str, Any]

SLEEP: Json = {"cmd": "echo $MARATHON_APP_ID; exec sleep 600", "cpus": 0.1, "mem": 16, "instances": 1}
NO_OVERLAP = {"minimumHealthCapacity": 0, "maximumOverCapacity": 0}


class Client:
    """Requests of an administrator to a Marathon, whose apps are in one group."""

    def __init__(self, server: MarathonServer, group: str, eventually: Eventually) -> None:
        self.server = server
        self.group = group
        self._eventually = eventually
        self.headers = {"Authorization": f"token={server.token}"}
        self._http = httpx.Client(base_url=server.url, headers=self.headers)

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, path: str, body: object = None, status: int | None = None) -> Any:  # noqa: ANN401
        answer = self._http.request(method, path, json=body)
        assert status is None or answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def app(self, name: str = "one") -> Json:
        path = f"/v2/apps{self.group}/{name}?embed=app.tasks&embed=app.lastTaskFailure"
        return dict(self.ask("GET", path, status=200)["app"])

    def tasks(self, name: str = "one", state: str = "TASK_RUNNING") -> list[Json]:
        return [each for each in self.app(name)["tasks"] if each["state"] == state]

    def create(self, *names: str, **changes: object) -> None:
        apps = [{**SLEEP, "id": name, **changes} for name in names]
        self.ask("POST", "/v2/groups", {"id": self.group, "apps": apps}, 201)

    def settle(self) -> None:
        self._eventually(lambda: not self.ask("GET", "/v2/deployments"), what="no deployment runs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MarathonServer]:
    """Two agents, of which one has an attribute."""
    agents: list[Json] = [{"cpus": 4.0, "mem": 1024.0}, {"cpus": 4.0, "mem": 1024.0, "attributes": {"rack": "r2"}}]
    made = MarathonServer(tmp_path_factory.mktemp("marathon"), agents)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def client(server: MarathonServer, request: pytest.FixtureRequest, eventually: Eventually) -> Iterator[Client]:
    """A client with a group of its own, whose apps end with the test."""
    words = re.findall(r"[a-z0-9]+", request.node.name.lower())
    made = Client(server, "/" + "-".join(words)[:60].rstrip("-"), eventually)
    yield made
    server.clear_faults()
    made.ask("DELETE", f"/v2/groups{made.group}?force=true")
    eventually(lambda: not made.ask("GET", "/v2/tasks")["tasks"], what="no task is left")
    made.close()


def test_a_group_starts_its_apps_and_a_second_one_of_its_name_is_refused(client: Client) -> None:
    """POST creates, and answers 409 to a second creation; DELETE ends all apps."""
    client.create("one", "sub/two")
    refused = client.ask("POST", "/v2/groups", {"id": client.group, "apps": []}, 409)
    assert refused["message"] == f"Group {client.group} is already created. Use PUT to change this group."
    client.settle()
    shown = client.ask("GET", f"/v2/groups{client.group}", status=200)
    assert [each["id"] for each in shown["apps"]] == [f"{client.group}/one"]
    assert [each["id"] for group in shown["groups"] for each in group["apps"]] == [f"{client.group}/sub/two"]
    task = client.tasks()[0]
    assert task["host"] in client.server.hosts
    assert task["id"] in client.server.containers()
    client.ask("DELETE", f"/v2/groups{client.group}", status=200)
    client.ask("GET", f"/v2/groups{client.group}", status=404)
    client.settle()
    assert not client.server.containers()


def test_a_put_of_a_group_starts_changes_and_ends_apps(client: Client) -> None:
    """Apps that are left out end, unchanged ones keep their tasks."""
    client.create("kept", "changed", "removed")
    client.settle()
    kept, changed = client.tasks("kept"), client.tasks("changed")
    apps = [
        {**SLEEP, "id": "kept"},
        {**SLEEP, "id": "changed", "env": {"A": "1"}, "upgradeStrategy": NO_OVERLAP},
        {**SLEEP, "id": "added"},
    ]
    dry = client.ask("PUT", "/v2/groups?dryRun=true", {"id": client.group, "apps": apps}, 200)
    assert [each["actions"][0]["action"] for each in dry["steps"]] == [
        "StopApplication",
        "StartApplication",
        "ScaleApplication",
    ]
    assert not client.ask("GET", "/v2/deployments")
    client.ask("PUT", "/v2/groups", {"id": client.group, "apps": apps}, 200)
    client.settle()
    assert client.tasks("kept") == kept
    assert client.tasks("changed")[0]["id"] != changed[0]["id"]
    assert len(client.tasks("added")) == 1
    client.ask("GET", f"/v2/apps{client.group}/removed", status=404)


def test_a_deployment_locks_its_apps(client: Client) -> None:
    """A change is refused with the deployments that hold the lock; force overrides them, DELETE undoes."""
    check = [{"name": "ready", "portName": "http", "path": "/", "intervalSeconds": 1, "timeoutSeconds": 1}]
    ports = [{"port": 0, "name": "http"}]
    client.create("one")
    client.settle()
    old = client.tasks()
    path = f"/v2/apps{client.group}/one"
    update = {"env": {"A": "1"}, "portDefinitions": ports, "readinessChecks": check}
    held = client.ask("PUT", path, update, 200)["deploymentId"]
    locked = client.ask("PUT", path, {"instances": 2}, 409)
    assert locked["deployments"] == [{"id": held}]
    assert locked["message"].startswith("App is locked by one or more deployments.")
    (shown,) = client.ask("GET", "/v2/deployments")
    assert (shown["id"], shown["affectedApps"]) == (held, [f"{client.group}/one"])
    assert shown["currentActions"][0]["action"] == "RestartApplication"
    undoing = client.ask("DELETE", f"/v2/deployments/{held}", status=200)["deploymentId"]
    assert undoing != held
    client.settle()
    assert client.tasks() == old
    assert "A" not in client.app()["env"]
    client.ask("PUT", path, update, 200)
    client.ask("PUT", f"{path}?force=true", {"env": {"A": "2"}, "readinessChecks": []}, 200)
    client.settle()
    assert client.app()["env"] == {"A": "2"}
    client.ask("DELETE", "/v2/deployments/unknown", status=404)


def test_a_readiness_check_holds_a_deployment_until_it_succeeds(client: Client, eventually: Eventually) -> None:
    """The deployment ends when the task answers at its port, which Marathon has chosen."""
    web = "while [ ! -e go ]; do sleep 0.02; done; exec python3 -m http.server --bind $HOST $PORT_HTTP"
    check = {"name": "ready", "portName": "http", "path": "/", "intervalSeconds": 0, "timeoutSeconds": 1}
    client.create("one", cmd=web, portDefinitions=[{"port": 0, "name": "http"}], readinessChecks=[check])
    (task,) = eventually(client.tasks)
    eventually(lambda: client.ask("GET", "/v2/deployments")[0]["currentActions"][0]["readinessCheckResults"])
    (client.server.folder / "containers" / task["id"] / "sandbox" / "go").touch()
    client.settle()
    assert httpx.get(f"http://{task['host']}:{task['ports'][0]}").status_code == 200


def test_a_failed_task_is_replaced_after_a_delay(client: Client, eventually: Eventually) -> None:
    """The queue shows the delay, which can be reset; the app shows the last failure."""
    client.create("one", backoffSeconds=250, backoffFactor=2)
    client.settle()
    (task,) = client.tasks()
    os.kill(client.server.containers()[task["id"]], signal.SIGKILL)
    eventually(lambda: client.app().get("lastTaskFailure"), what="the failure is known")
    failure = client.app()["lastTaskFailure"]
    assert (failure["taskId"], failure["state"]) == (task["id"], "TASK_FAILED")
    assert failure["message"] == "Command terminated with signal Killed"
    (waiting,) = eventually(lambda: client.ask("GET", "/v2/queue")["queue"])
    assert waiting["count"] == 1
    assert 200 < waiting["delay"]["timeLeftSeconds"] <= 250
    assert not waiting["delay"]["overdue"]
    client.ask("DELETE", f"/v2/queue{client.group}/one/delay", status=204)
    (second,) = eventually(client.tasks)
    assert second["id"] != task["id"]


def test_an_app_that_fits_nowhere_waits_with_reasons(client: Client, eventually: Eventually) -> None:
    """The queue counts declined offers by reason, in Marathon's order."""
    client.create("big", mem=5000)
    client.ask(
        "POST", "/v2/apps", {**SLEEP, "id": f"{client.group}/far", "constraints": [["rack", "CLUSTER", "r9"]]}, 201
    )

    def reasons() -> dict[str, list[Json]]:
        return {
            each["app"]["id"].rpartition("/")[2]: [
                one for one in each["processedOffersSummary"].get("rejectSummaryLastOffers", ()) if one["declined"]
            ]
            for each in client.ask("GET", "/v2/queue")["queue"]
        }

    eventually(lambda: all(reasons().get(each) for each in ("big", "far")))
    assert reasons()["big"] == [{"reason": "InsufficientMemory", "declined": 2, "processed": 2}]
    assert reasons()["far"] == [{"reason": "UnfulfilledConstraint", "declined": 2, "processed": 2}]


def test_constraints_choose_agents(client: Client) -> None:
    """UNIQUE spreads over hosts, CLUSTER takes an attribute."""
    client.create("one", instances=2, constraints=[["hostname", "UNIQUE"]])
    client.ask(
        "POST", "/v2/apps", {**SLEEP, "id": f"{client.group}/rack", "constraints": [["rack", "CLUSTER", "r2"]]}, 201
    )
    client.settle()
    assert {each["host"] for each in client.tasks()} == set(client.server.hosts)
    assert [each["host"] for each in client.tasks("rack")] == client.server.hosts[1:]


def test_a_task_has_the_variables_and_ports_of_marathon(client: Client, eventually: Eventually) -> None:
    """Its output is in the sandbox, which the files interface of the agent serves."""
    ports = [{"port": 0, "name": "http"}, {"port": 0, "name": "admin"}]
    client.create(
        "one", cmd="env; echo lost >&2; exec sleep 600", labels={"a.b": "c"}, env={"X": "y"}, portDefinitions=ports
    )
    client.settle()
    (task,) = client.tasks()
    master = httpx.get(f"{client.server.mesos_url}/state").json()
    (agent,) = [each for each in master["slaves"] if each["id"] == task["slaveId"]]
    url = f"http://{agent['pid'].partition('@')[2]}"
    (framework,) = httpx.get(f"{url}/state").json()["frameworks"]
    (executor,) = [each for each in framework["executors"] if each["id"] == task["id"]]

    def read(name: str) -> str:
        asked = {"path": f"{executor['directory']}/{name}", "offset": "0", "length": "10000"}
        return str(httpx.get(f"{url}/files/read", params=asked).json()["data"])

    eventually(lambda: "lost" in read("stderr"))
    env = dict(line.split("=", 1) for line in read("stdout").splitlines())
    assert env["MARATHON_APP_ID"] == f"{client.group}/one"
    assert env["MARATHON_APP_LABEL_A_B"] == "c"
    assert env["MESOS_TASK_ID"] == task["id"]
    assert env["MESOS_SANDBOX"] == env["PWD"] == executor["directory"]
    assert env["X"] == "y"
    assert env["HOST"] == task["host"]
    assert env["PORTS"] == f"{task['ports'][0]},{task['ports'][1]}"
    assert env["PORT0"] == env["PORT"] == env["PORT_HTTP"] == str(task["ports"][0])
    assert env["PORT_ADMIN"] == str(task["ports"][1])
    assert httpx.get(f"{url}/files/read", params={"path": "/etc/passwd"}).status_code == 404


def test_tasks_are_killed_replaced_and_scaled(client: Client, eventually: Eventually) -> None:
    """A killed task is replaced; with scale it is not."""
    client.create("one", instances=2)
    client.settle()
    first, second = (each["id"] for each in client.tasks())
    killed = client.ask("POST", "/v2/tasks/delete", {"ids": [first]}, 200)
    assert [each["id"] for each in killed["tasks"]] == [first]
    eventually(lambda: len(ids := [each["id"] for each in client.tasks()]) == 2 and first not in ids)
    client.ask("DELETE", f"/v2/apps{client.group}/one/tasks/{second}?scale=true", status=200)
    client.settle()
    assert client.app()["instances"] == 1
    assert second not in [each["id"] for each in client.tasks()]
    client.ask("DELETE", f"/v2/apps{client.group}/one/tasks?scale=true&wipe=true", status=400)
    client.ask("POST", "/v2/tasks/delete", {"ids": ["unknown"]}, 400)
    client.ask("DELETE", f"/v2/apps{client.group}/one/tasks/unknown", status=404)


def test_wiped_tasks_are_replaced_before_they_have_ended(client: Client, eventually: Eventually) -> None:
    """Marathon expunges them first, so two may run for a moment."""
    client.create("one", cmd="trap '' TERM; echo ready; while :; do sleep 0.05; done", taskKillGracePeriodSeconds=600)
    client.settle()
    (old,) = client.tasks()
    output = client.server.folder / "containers" / old["id"] / "sandbox" / "stdout"
    eventually(lambda: output.exists() and output.read_text())
    pid = client.server.containers()[old["id"]]
    client.ask("DELETE", f"/v2/apps{client.group}/one/tasks/{old['id']}?wipe=true", status=200)
    eventually(lambda: [each["id"] for each in client.tasks()] not in ([], [old["id"]]))
    assert client.server.containers()[old["id"]] == pid
    client.ask("DELETE", f"/v2/apps{client.group}/one", status=200)
    for each in client.server.containers().values():
        os.kill(each, signal.SIGKILL)


def test_tasks_of_a_lost_agent_are_unreachable_then_replaced(client: Client, eventually: Eventually) -> None:
    """Expunged tasks run on where they are, and end when their agent comes back."""
    strategy = {"inactiveAfterSeconds": 600, "expungeAfterSeconds": 600}
    here = [["hostname", "LIKE", client.server.hosts[1].replace(".", r"\.")]]
    client.create("waits", unreachableStrategy=strategy, constraints=here)
    client.ask(
        "POST", "/v2/apps", {**SLEEP, "id": f"{client.group}/moves", "constraints": [["hostname", "UNIQUE"]]}, 201
    )
    client.settle()
    (waits,), (moves,) = client.tasks("waits"), client.tasks("moves")
    client.server.lose_agent(client.server.hosts[1])
    client.server.lose_agent(client.server.hosts[0])
    assert [each["id"] for each in client.tasks("waits", "TASK_UNREACHABLE")] == [waits["id"]]
    eventually(lambda: not client.app("moves")["tasks"], what="the task is expunged")
    assert {waits["id"], moves["id"]} <= client.server.containers().keys()
    for host in client.server.hosts:
        client.server.return_agent(host)
    assert [each["id"] for each in client.tasks("waits")] == [waits["id"]]
    eventually(lambda: client.tasks("moves"), what="it is replaced")
    eventually(lambda: moves["id"] not in client.server.containers(), what="the old one ends")


def test_a_task_on_a_machine_that_dies_is_gone(client: Client, eventually: Eventually) -> None:
    """The agent comes back without the task."""
    client.create("one", unreachableStrategy="disabled")
    client.settle()
    (task,) = client.tasks()
    client.server.lose_agent(task["host"], running=False)
    eventually(lambda: task["id"] not in client.server.containers())
    assert client.tasks(state="TASK_UNREACHABLE")
    client.server.return_agent(task["host"])
    eventually(lambda: client.app().get("lastTaskFailure"))
    assert client.app()["lastTaskFailure"]["state"] == "TASK_GONE"


def test_events_tell_of_tasks_and_deployments(client: Client) -> None:
    """The stream has the types that a client asks for."""
    path = "/v2/events?event_type=event_stream_attached,status_update_event,deployment_success"
    seen: list[Json] = []
    with httpx.stream("GET", client.server.url + path, headers=client.headers, timeout=60) as stream:
        for line in stream.iter_lines():
            if line == "event: event_stream_attached":
                client.create("one")
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: ")))
            if seen and seen[-1]["eventType"] == "deployment_success":
                break
    assert [each["taskStatus"] for each in seen if "taskStatus" in each] == ["TASK_STAGING", "TASK_RUNNING"]


def test_an_app_is_upgraded_without_overlap_and_stops_with_its_grace(client: Client, eventually: Eventually) -> None:
    """With both capacities 0, the new task starts when the old one has ended."""
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    client.create("one", cmd=stubborn, upgradeStrategy=NO_OVERLAP, taskKillGracePeriodSeconds=600)
    client.settle()
    (old,) = client.tasks()
    output = client.server.folder / "containers" / old["id"] / "sandbox" / "stdout"
    eventually(lambda: output.exists() and output.read_text())
    client.ask("PUT", f"/v2/apps{client.group}/one", {**SLEEP}, 200)
    (killing,) = eventually(lambda: client.tasks(state="TASK_KILLING"))
    assert killing["id"] == old["id"]
    assert not client.tasks()
    os.kill(client.server.containers()[old["id"]], signal.SIGKILL)
    client.settle()
    assert [each["id"] for each in client.tasks()] != [old["id"]]
    versions = client.ask("GET", f"/v2/apps{client.group}/one/versions", status=200)["versions"]
    assert len(versions) == 2
    assert client.ask("GET", f"/v2/apps{client.group}/one/versions/{versions[1]}")["cmd"] == stubborn


def test_a_health_check_kills_a_task_that_fails_it(client: Client, eventually: Eventually) -> None:
    """A command that fails so often counts as unhealthy; the task is replaced."""
    check = {"protocol": "COMMAND", "command": {"value": "test -e well"}, "intervalSeconds": 0, "gracePeriodSeconds": 0}
    client.create("one", healthChecks=[{**check, "maxConsecutiveFailures": 2, "timeoutSeconds": 5}])
    (first,) = eventually(client.tasks)
    eventually(lambda: [each["id"] for each in client.tasks()] not in ([], [first["id"]]), what="it is replaced")


def test_a_task_without_memory_or_image_fails_with_words(client: Client, eventually: Eventually) -> None:
    """The message of the last failure has the reason."""
    client.create("one", backoffSeconds=600)
    client.settle()
    client.server.out_of_memory(client.tasks()[0]["id"])
    eventually(lambda: client.app().get("lastTaskFailure"))
    assert client.app()["lastTaskFailure"]["message"].startswith("Memory limit exceeded: Requested: 16MB")
    docker = {"type": "DOCKER", "docker": {"image": "missing:1"}}
    client.ask(
        "POST", "/v2/apps", {**SLEEP, "id": f"{client.group}/two", "container": docker, "backoffSeconds": 600}, 201
    )
    eventually(lambda: client.app("two").get("lastTaskFailure"))
    assert "Failed to pull image 'missing:1'" in client.app("two")["lastTaskFailure"]["message"]


def test_a_restart_keeps_apps_tasks_and_deployments(client: Client, eventually: Eventually) -> None:
    """Tasks run on without their Marathon; what ended meanwhile is replaced."""
    client.create("one", "two", backoffSeconds=0)
    client.settle()
    (one,), (two,) = client.tasks("one"), client.tasks("two")
    pid = client.server.containers()[two["id"]]
    client.ask(
        "PUT", f"/v2/apps{client.group}/one", {"cpus": 100, "upgradeStrategy": {"minimumHealthCapacity": 1}}, 200
    )
    client.server.process.kill()
    os.kill(pid, signal.SIGKILL)
    client.server.start()
    assert [each["id"] for each in client.tasks("one")] == [one["id"]]
    assert len(client.ask("GET", "/v2/deployments")) == 1
    eventually(lambda: [each["id"] for each in client.tasks("two")] not in ([], [two["id"]]), what="it is replaced")


def test_an_answer_that_is_lost_was_work_that_is_done(client: Client) -> None:
    """A driver that repeats its request hears that the group exists."""
    client.server.fault(Fault("POST /v2/groups.*", "drop"))
    with pytest.raises(httpx.RemoteProtocolError):
        client.create("one")
    client.ask("POST", "/v2/groups", {"id": client.group, "apps": []}, 409)
    client.server.fault(Fault("GET /v2/groups.*", "refuse", status=503))
    client.ask("GET", f"/v2/groups{client.group}", status=503)


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"cmd": None}, 422, "AppDefinition must either contain one of 'cmd' or 'args', and/or a 'container'."),
        ({"args": ["a"]}, 422, "AppDefinition must either contain one of 'cmd' or 'args', and/or a 'container'."),
        ({"cpus": 0}, 422, "got 0, expected 0.001 or more"),
        ({"mem": "much"}, 400, "error.expected.mem"),
        (
            {"env": {"A": {"secret": "s"}}},
            422,
            "Feature secrets is not enabled. Enable with --enable_features secrets)",
        ),
        ({"constraints": [["hostname", "NEAR"]]}, 422, "Operator must be one of the following"),
        ({"constraints": [["hostname", "LIKE"]]}, 422, "Value must be specified"),
        ({"id": "/elsewhere/one"}, 422, "identifier /elsewhere/one is not child of"),
        ({"id": "Capital"}, 422, "must fully match regular expression"),
        ({"upgradeStrategy": {"maximumOverCapacity": 2}}, 422, "got 2, expected between 0.0 and 1.0"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_invalid_apps_are_refused(client: Client, change: Json, status: int, error: str) -> None:
    """400 is for another shape, 422 for a broken rule; nothing is created."""
    app = {"id": "one", **SLEEP, **change}
    refused = client.ask("POST", "/v2/groups", {"id": client.group, "apps": [app]}, status)
    assert refused["message"] in {"Invalid JSON", "Object is not valid"}
    assert error in refused["details"][0]["errors"][0]
    client.ask("GET", f"/v2/groups{client.group}", status=404)


def test_users_have_rights_by_action_and_path(client: Client) -> None:
    """401 is for an unknown user, 403 for a missing right; lists have what a user may see."""
    client.create("one")
    client.server.add_user("reader:secret", ("view", "/"))
    client.server.add_user("mine", *((action, "/mine") for action in ("view", "create", "update")))

    def ask(
        method: str, path: str, body: object = None, headers: Json | None = None, auth: tuple[str, str] | None = None
    ) -> httpx.Response:
        return httpx.request(method, client.server.url + path, json=body, headers=headers, auth=auth)

    assert ask("GET", "/v2/apps").status_code == 401
    assert ask("GET", "/v2/apps", headers={"Authorization": "token=wrong"}).json() == {
        "message": "Invalid username or password."
    }
    path = f"/v2/apps{client.group}/one"
    assert ask("GET", path, auth=("reader", "secret")).status_code == 200
    refused = ask("DELETE", path, auth=("reader", "secret"))
    assert (refused.status_code, refused.json()["message"]) == (403, "Not Authorized to perform this action!")
    mine = {"Authorization": "token=mine"}
    assert ask("GET", "/v2/apps", headers=mine).json() == {"apps": []}
    assert ask("POST", "/v2/groups", {"id": "/mine", "apps": []}, headers=mine).status_code == 201
    assert ask("POST", "/v2/groups", {"id": "/other", "apps": []}, headers=mine).status_code == 403
    assert ask("DELETE", "/v2/groups/mine", headers=mine).status_code == 403
    client.ask("DELETE", "/v2/groups/mine", status=200)


def test_info_names_the_leader_and_mesos(client: Client) -> None:
    """A driver checks its profile with it."""
    info = client.ask("GET", "/v2/info", status=200)
    assert (info["name"], info["elected"]) == ("marathon", True)
    assert info["marathon_config"]["mesos_leader_ui_url"] == f"{client.server.mesos_url}/"
    assert client.ask("GET", "/v2/leader")["leader"] == info["leader"]
