"""The rules of tasks, against a model of a master that loses, repeats and delays what it may."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_scheduler_kit.managed.rest_api import Json
from heron_scheduler_mesos.constraints import Place
from heron_scheduler_mesos.offers import Offer
from heron_scheduler_mesos.tasks import Task, TaskPhase, Tasks

TERMINAL = frozenset({"TASK_FINISHED", "TASK_FAILED", "TASK_KILLED"})


@dataclass
class Remote:
    """A task as the cluster has it."""

    container_id: int
    agent_id: str
    state: str = "TASK_STAGING"
    uuid: str = ""


@dataclass
class ModelMaster:
    """Agents and tasks. The updates of a task are repeated until they are acknowledged; what the master says is not."""

    tasks: dict[str, Remote] = field(default_factory=dict)
    lost_agents: set[str] = field(default_factory=set)
    ever_lost: set[str] = field(default_factory=set)
    said: list[Json] = field(default_factory=list)
    uuids: itertools.count[int] = field(default_factory=itertools.count)

    def receive(self, call: Any) -> None:  # noqa: ANN401 - JSON
        """Carry out one call."""
        match call:
            case {"type": "LAUNCH", "task_id": task_id, "container": container, "agent": agent}:
                assert task_id not in self.tasks, "an id is used once"
                self.tasks[task_id] = Remote(container, agent)
                self.change(task_id, "TASK_RUNNING")
            case {"type": "KILL", "kill": {"task_id": {"value": task_id}}}:
                if task_id in self.tasks and self.tasks[task_id].agent_id not in self.lost_agents:
                    self.change(task_id, "TASK_KILLED")
                else:
                    self.say(task_id)
            case {"type": "ACKNOWLEDGE", "acknowledge": {"task_id": {"value": task_id}, "uuid": uuid}}:
                remote = self.tasks[task_id]
                if remote.uuid == uuid:
                    remote.uuid = ""
                    if remote.state in TERMINAL:
                        del self.tasks[task_id]
            case {"type": "RECONCILE", "reconcile": {"tasks": asked}}:
                for each in [task["task_id"]["value"] for task in asked] or list(self.tasks):
                    self.say(each)
            case _:
                raise AssertionError(call)

    def change(self, task_id: str, state: str) -> None:
        """Let a task change its state, unless it has ended."""
        remote = self.tasks[task_id]
        if remote.state not in TERMINAL:
            remote.state, remote.uuid = state, f"u{next(self.uuids)}"

    def say(self, task_id: str) -> None:
        """Tell what the master knows, once."""
        remote = self.tasks.get(task_id)
        if remote is None:
            self.said.append(status(task_id, "", "TASK_UNKNOWN"))
        elif remote.agent_id in self.lost_agents:
            self.said.append(status(task_id, remote.agent_id, "TASK_UNREACHABLE"))
        else:
            self.said.append(status(task_id, remote.agent_id, remote.state))

    def repeated(self) -> list[Json]:
        """Return the updates that wait for an acknowledgement."""
        return [
            status(task_id, each.agent_id, each.state, each.uuid)
            for task_id, each in self.tasks.items()
            if each.uuid and each.agent_id not in self.lost_agents
        ]

    def alive(self, *, seen: bool = True) -> Counter[int]:
        """Count the live tasks of each container; `seen`: without those of agents that were ever lost."""
        hidden = self.ever_lost if seen else set()
        live = (each for each in self.tasks.values() if each.state not in TERMINAL and each.agent_id not in hidden)
        return Counter(each.container_id for each in live)


def status(task_id: str, agent_id: str, state: str, uuid: str = "") -> Json:
    found: Json = {"task_id": {"value": task_id}, "agent_id": {"value": agent_id}, "state": state}
    return {**found, **({"uuid": uuid} if uuid else {})}


class ModelSupervisor:
    """Starts each container again when its task has ended, and keeps what a real one writes to its folder."""

    def __init__(self, master: ModelMaster, containers: int) -> None:
        self.master = master
        self.attempts = dict.fromkeys(range(containers), 1)
        self.tasks = Tasks()
        self.out: list[Any] = []
        self.written = b"{}"
        for each in self.attempts:
            self.tasks.start(each, 1)

    def send(self, calls: list[Any]) -> None:
        self.written = msgspec.json.encode(self.tasks.by_container)
        self.out += calls

    def launch(self, agent: str) -> None:
        """Give every waiting task an offer of this agent."""
        calls = []
        for each in list(self.tasks.waiting()):
            task = self.tasks.launch(each.container_id, Offer("o", agent, Place(agent), "http://a:1", ()))
            calls.append({"type": "LAUNCH", "task_id": task.task_id, "container": task.container_id, "agent": agent})
        self.send(calls)

    def hear(self, found: Json) -> None:
        self.send(self.tasks.update(found))
        self.reap()

    def reap(self) -> None:
        """Start the next attempt of each container that has ended."""
        for container_id, task in list(self.tasks.by_container.items()):
            if task.phase is TaskPhase.ENDED:
                self.attempts[container_id] += 1
                self.tasks.start(container_id, self.attempts[container_id])
        self.send([])

    def flush(self) -> None:
        for each in self.out:
            self.master.receive(each)
        self.out.clear()

    def reconnect(self, landed: int, *, died: bool) -> None:
        """Lose the subscription, and what was on its way behind the first `landed` calls; `died`: and all memory."""
        for each in self.out[:landed]:
            self.master.receive(each)
        self.out.clear()
        self.master.said.clear()
        if died:
            self.tasks = Tasks(msgspec.json.decode(self.written, type=dict[int, Task]))
            for container_id, attempt in self.attempts.items():
                self.tasks.start(container_id, attempt)
        self.send(self.tasks.reconcile())


_STEPS = st.one_of(
    st.tuples(st.just("launch"), st.sampled_from(["s0", "s1"])),
    st.tuples(st.just("flush")),
    st.tuples(st.just("hear"), st.integers(0, 9)),
    st.tuples(st.just("end"), st.integers(0, 2), st.sampled_from(sorted(TERMINAL))),
    st.tuples(st.just("restart"), st.integers(0, 2)),
    st.tuples(st.just("lose"), st.sampled_from(["s0", "s1"])),
    st.tuples(st.just("find"), st.sampled_from(["s0", "s1"])),
    st.tuples(st.just("reconnect"), st.integers(0, 3), st.booleans()),
)


@settings(max_examples=40)
@given(st.lists(_STEPS, max_size=40))
def test_no_container_runs_twice_and_each_runs_in_the_end(steps: list[tuple[Any, ...]]) -> None:
    """Lost calls, repeated and late updates, lost agents that come back, and supervisors that die in between."""
    master = ModelMaster()
    supervisor = ModelSupervisor(master, 3)
    for step in steps:
        _do(master, supervisor, step)
        assert max(master.alive().values(), default=0) <= 1
    master.lost_agents.clear()
    supervisor.reconnect(9, died=False)
    for _ in range(12):
        supervisor.launch("s2")
        supervisor.flush()
        heard, master.said = [*master.said, *master.repeated()], []
        for each in heard:
            supervisor.hear(each)
        supervisor.flush()
    assert master.alive(seen=False) == {0: 1, 1: 1, 2: 1}
    assert {each.task_id for each in supervisor.tasks.by_container.values()} == {*master.tasks}
    assert master.repeated() == []


def _do(master: ModelMaster, supervisor: ModelSupervisor, step: tuple[Any, ...]) -> None:  # noqa: C901 - a table
    match step:
        case ("launch", agent) if agent not in master.lost_agents:
            supervisor.launch(agent)
        case ("flush",):
            supervisor.flush()
        case ("hear", index):
            heard = [*master.repeated(), *master.said]
            if heard:
                supervisor.hear(heard[index % len(heard)])  # what is repeated may come twice
        case ("end", index, state) if master.tasks:
            name = sorted(master.tasks)[index % len(master.tasks)]
            if master.tasks[name].agent_id not in master.lost_agents:
                master.change(name, state)
        case ("restart", container_id):
            supervisor.send(supervisor.tasks.end(container_id, 1.0))
            supervisor.reap()
        case ("lose", agent):
            supervisor.flush()
            master.lost_agents.add(agent)
            master.ever_lost.add(agent)
            for name, each in master.tasks.items():
                if each.agent_id == agent:
                    master.say(name)
        case ("find", agent):
            master.lost_agents.discard(agent)
        case ("reconnect", landed, died):
            supervisor.reconnect(landed, died=died)


def started() -> tuple[Tasks, Task]:
    tasks = Tasks()
    tasks.start(1, 1)
    return tasks, tasks.launch(1, Offer("o", "s1", Place("a"), "http://a:5051", ()))


@pytest.mark.parametrize(
    ("state", "phase", "error"),
    [
        ("TASK_STAGING", TaskPhase.LAUNCHED, ""),
        ("TASK_STARTING", TaskPhase.LAUNCHED, ""),
        ("TASK_RUNNING", TaskPhase.RUNNING, ""),
        ("TASK_KILLING", TaskPhase.LAUNCHED, ""),
        ("TASK_FINISHED", TaskPhase.ENDED, ""),
        ("TASK_FAILED", TaskPhase.ENDED, "said (TASK_FAILED)"),
        ("TASK_KILLED", TaskPhase.ENDED, "said (TASK_KILLED)"),
        ("TASK_ERROR", TaskPhase.ENDED, "said (TASK_ERROR)"),
        ("TASK_LOST", TaskPhase.ENDED, "Mesos has lost it: said"),
        ("TASK_DROPPED", TaskPhase.ENDED, "Mesos has not started it: said"),
        ("TASK_UNREACHABLE", TaskPhase.ENDED, "its agent is lost: said"),
        ("TASK_GONE", TaskPhase.ENDED, "its agent is gone: said"),
        ("TASK_GONE_BY_OPERATOR", TaskPhase.ENDED, "an operator has declared its agent gone: said"),
        ("TASK_UNKNOWN", TaskPhase.ENDED, "Mesos does not know it: said"),
    ],
)
def test_each_state_is_understood_and_acknowledged(state: str, phase: TaskPhase, error: str) -> None:
    """Only updates with a uuid are repeated, so only they are acknowledged."""
    tasks, task = started()
    found = {**status(task.task_id, "s1", state, "dXVpZA=="), "message": "said"}
    (acknowledged,) = tasks.update(found)
    assert acknowledged == {
        "type": "ACKNOWLEDGE",
        "acknowledge": {"agent_id": {"value": "s1"}, "task_id": {"value": task.task_id}, "uuid": "dXVpZA=="},
    }
    assert (task.phase, task.error, task.failed) == (phase, error, state == "TASK_FAILED")
    assert tasks.update(status(task.task_id, "s1", "TASK_FINISHED")) == []


def test_a_task_that_is_not_known_here_is_killed() -> None:
    """Its agent was lost and came back, or its supervisor has died before it wrote the task."""
    tasks, _ = started()
    (kill,) = tasks.update(status("container-1.0.aa", "s9", "TASK_RUNNING"))
    assert kill["type"] == "KILL"


def test_a_start_of_the_same_attempt_goes_on() -> None:
    """A supervisor that starts again begins each container with the attempt of its spec."""
    tasks, task = started()
    tasks.start(1, 1)
    assert tasks.by_container[1] is task
    tasks.start(1, 2)
    assert tasks.by_container[1] == Task(1, 2)


@pytest.mark.parametrize("launched", [True, False], ids=["removed", "withdrawn"])
def test_a_container_that_was_removed_is_added_again(launched: bool) -> None:
    """It begins with attempt 1 as before; the end of the former task is not its own."""
    tasks = Tasks()
    tasks.start(1, 1)
    if launched:
        task = tasks.launch(1, Offer("o", "s1", Place("a"), "http://a:5051", ()))
        tasks.update(status(task.task_id, "s1", "TASK_KILLED"))
    else:
        tasks.end(1, 1.0)
    assert tasks.by_container[1].phase is TaskPhase.ENDED
    tasks.by_container[1].reported = True
    tasks.start(1, 1)
    assert tasks.by_container[1] == Task(1, 1)
    launches = tasks.launches
    tasks.launch(1, Offer("o", "s1", Place("a"), "http://a:5051", ()))
    assert tasks.launches == launches + 1, "its claim is later than that of the former task"


def test_a_supervisor_that_starts_again_hears_of_each_end() -> None:
    """A container that has ended in order must not run again."""
    former = Task(1, 1, phase=TaskPhase.ENDED, reported=True)
    tasks = Tasks({1: former})
    tasks.start(1, 1)
    assert tasks.by_container[1] is former


def test_a_task_without_an_offer_ends_at_once() -> None:
    """Mesos has never heard of it."""
    tasks = Tasks()
    tasks.start(1, 1)
    assert tasks.end(1, 1.0) == []
    assert (tasks.by_container[1].phase, tasks.by_container[1].error) == (TaskPhase.ENDED, "it had not started")
