"""The paths that observe one task for seconds, with a client that answers as a test wants."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import cast

import httpx
import msgspec
import pytest

from heron.errors import AccessError, HeronError, RefusedError, UnreachableError
from heron.spi.task_memory import MemoryLook
from heron.spi.task_profile import ProfiledStack
from heron.spi.task_stacks import StackFrame
from heron_cli.client import Client, TaskMemory, TaskProfile, TaskTuples, TopologyPlans
from heron_service_tracker.answers.answer_parts import components_with_tuples
from heron_service_tracker.answers.flow import task_rows
from heron_service_tracker.answers.flow_answers import ProfileAnswer
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.calls.task_observers import TaskObservers
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.request_errors import BusyError
from heron_service_tracker.watches.observations import Observations

TASK = "/api/v1/clusters/near/topologies/words/tasks/2"
PLACE = ("words", "count", 2, 1, 1, 12, "h1")
LOOK = MemoryLook(0.0, 0.1, 100, 20, None, 40, 1, 1.0)
SLEEPS = StackFrame("/me/words.py", 7, "Count.process", "user", "time.sleep(0.02)")
PROFILE = TaskProfile(*PLACE, 0.0, 3.0, 8, (SLEEPS,), (ProfiledStack((0,), 0.0, 2.5),))
MEMORY = TaskMemory(*PLACE, LOOK, LOOK, 3.0, 0, (), (), (), ())
TUPLES = TaskTuples(*PLACE, 0.0, 3.0, 4, (), ())

Ask = Callable[..., httpx.Response]


class OneTask:
    """A client whose only topology has one task, and fails with `error` where that is set."""

    def __init__(self, error: HeronError | None = None) -> None:
        self.error = error
        self.began = threading.Semaphore(0)
        self.ends = threading.Event()
        self.ends.set()

    def topology(self, _name: str, timeout_s: float) -> nullcontext[OneTask]:
        """Return the connection, which is this object."""
        assert timeout_s > 0
        return nullcontext(self)

    def profile(self, task_id: int, *, seconds: float) -> TaskProfile:
        """Answer."""
        self._answer(task_id)
        return msgspec.structs.replace(PROFILE, lasted_s=seconds)

    def memory(self, task_id: int, *, seconds: float) -> TaskMemory:
        """Answer."""
        self._answer(task_id)
        return msgspec.structs.replace(MEMORY, traced_s=seconds)

    def tuples(self, task_id: int, *, tuples: int, seconds: float) -> TaskTuples:
        """Answer."""
        self._answer(task_id)
        return msgspec.structs.replace(TUPLES, lasted_s=seconds, wanted=tuples)

    def _answer(self, task_id: int) -> None:
        assert task_id == 2
        self.began.release()
        assert self.ends.wait(60.0)
        if self.error:
            raise self.error


@pytest.fixture
def ask(observations: Observations) -> Ask:
    """Asks an application once; `tuples` is the choice of the operator."""

    def send(
        path: str,
        error: HeronError | None = None,
        *,
        tuples: bool = False,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        async def once() -> httpx.Response:
            client = cast("Client", nullcontext(OneTask(error)))
            questions = Questions(lambda _cluster: client, tuples_allowed=tuples)
            app = application(observations, Access(Address("127.0.0.1", 8888)), asyncio.Event(), None, questions)
            transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8888") as sender:
                return await sender.request(method, TASK + path, headers=headers)

        return asyncio.run(once())

    return send


def allow(observations: Observations, plans: TopologyPlans, *, submitted: bool, now: bool) -> TopologyPlans:
    """Let the configuration of the bolt show its tuples, as it was submitted and as it is now."""
    key = "topology.inspect.tuples"
    definition, physical = plans.definition, plans.physical
    assert physical is not None

    def configured(value: bool) -> object:
        components = tuple(
            replace(each, config={**each.config, key: value}) if each.name == "count" else each
            for each in definition.components
        )
        return replace(definition, components=components)

    changed = TopologyPlans(
        configured(submitted),  # type: ignore[arg-type]  # a definition
        plans.packing,
        replace(physical, version=physical.version + 1, topology=configured(now)),  # type: ignore[arg-type]  # see above
    )
    observations.put_plans("near", "words", changed)
    return changed


def test_a_profile_and_the_memory_are_read(ask: Ask) -> None:
    """With the read-only key, as everything that only looks."""
    profile = ask("/profile?seconds=3")
    assert profile.status_code == 200
    assert (profile.json()["profile"]["component"], profile.json()["profile"]["lasted_s"]) == ("count", 3)
    assert profile.json()["speedscope"]["name"] == "words: count/2"
    assert profile.json()["functions"] == []  # of those on a processor
    (line,) = profile.json()["lines"]
    assert (line["line"], line["source"], line["on_s"], line["off_s"]) == (7, "time.sleep(0.02)", 0.0, 2.5)
    memory = ask("/memory?seconds=0")
    assert memory.status_code == 200
    assert (memory.json()["memory"]["pid"], memory.json()["memory"]["traced_s"]) == (12, 0)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/profile?seconds=0", 400),
        ("/profile?seconds=61", 400),
        ("/profile?seconds=1.5", 400),
        ("/memory?seconds=-1", 400),
        ("/memory?seconds=nan", 400),
        ("/tuples?tuples=101", 400),
        ("/tuples?length=1", 400),
        ("/nothing", 404),
    ],
)
def test_a_malformed_query_observes_nothing(ask: Ask, path: str, code: int) -> None:
    """As by all other paths."""
    assert ask(path, tuples=True).status_code == code


def test_an_observation_is_no_get(ask: Ask) -> None:
    """A page of another site can send a GET without its name, and an observation slows the task."""
    assert ask("/memory", method="GET").status_code == 405
    assert ask("/memory", headers={"origin": "http://elsewhere.example"}).status_code == 403


def test_a_task_that_is_observed_already_is_busy(ask: Ask) -> None:
    """The task decides, because other commands may observe it."""
    busy = ask("/profile", RefusedError("task 2 is being profiled already"))
    assert (busy.status_code, busy.json()["title"]) == (409, "busy")
    assert busy.json()["detail"] == "task 2 is being profiled already"


@pytest.mark.parametrize(
    ("error", "status"), [(UnreachableError("the process has ended"), 503), (AccessError("other keys"), 403)]
)
def test_a_task_that_does_not_answer_is_a_problem_with_its_reason(ask: Ask, error: HeronError, status: int) -> None:
    """A person learns what to look at next."""
    answer = ask("/memory", error)
    assert (answer.status_code, answer.json()["detail"]) == (status, str(error))


def test_a_tracker_observes_few_tasks_at_a_time() -> None:
    """Each needs a thread and a connection for up to a minute."""

    async def five() -> None:
        task = OneTask()
        task.ends.clear()
        observers = TaskObservers(lambda _cluster: cast("Client", nullcontext(task)))
        first = [asyncio.create_task(observers.profile("near", "words", 2, 1.0)) for _ in range(4)]
        for _ in first:
            assert await asyncio.to_thread(task.began.acquire, timeout=60.0)
        with pytest.raises(BusyError, match="4 observations are under way, which is the limit of a tracker"):
            await observers.memory("near", "words", 2, 1.0)
        task.ends.set()
        assert [(await each).profile.lasted_s for each in first] == [1.0] * 4
        assert (await observers.memory("near", "words", 2, 1.0)).memory.traced_s == 1.0

    asyncio.run(five())


class ManyTasks(OneTask):
    """A client with tasks of which number 3 has ended; it counts how many are sampled at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.at_once = self.most_at_once = 0
        self._counts = threading.Lock()

    def _answer(self, task_id: int) -> None:
        with self._counts:
            self.asked.append(task_id)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.began.release()
        assert self.ends.wait(60.0)
        with self._counts:
            self.at_once -= 1
        if task_id == 3:
            msg = "the process has ended"
            raise UnreachableError(msg)


def test_the_profiles_of_a_component_are_one_and_say_which_tasks_are_missing() -> None:
    """A component is one observation of the tracker. 16 of its tasks are sampled at a time, and at most 64 of them."""

    async def sampled(tasks: range) -> tuple[ManyTasks, ProfileAnswer]:
        task = ManyTasks()
        task.ends.clear()
        observers = TaskObservers(lambda _cluster: cast("Client", nullcontext(task)))
        asked = asyncio.create_task(observers.component_profile("near", "words", tasks, 2.0))
        for _ in range(min(16, len(tasks))):
            assert await asyncio.to_thread(task.began.acquire, timeout=60.0)
        task.ends.set()
        return task, await asked

    task, answer = asyncio.run(sampled(range(2, 5)))
    assert (answer.task_ids, answer.missing) == ((2, 4), ("task 3: the process has ended",))
    assert (answer.profile.lasted_s, answer.profile.samples, answer.profile.task_id) == (4.0, 16, 0)
    (line,) = answer.lines
    assert (line.line, line.off_s) == (7, 5.0)
    task, answer = asyncio.run(sampled(range(10, 140)))
    assert (len(task.asked), task.most_at_once) == (64, 16)
    assert (min(task.asked), max(task.asked)) == (10, 137)
    assert answer.missing == ("66 more tasks: at most 64 of a component are sampled",)


def test_a_component_is_asked_by_its_name(ask: Ask) -> None:
    """An unknown one is named, as everywhere; if no task answers, the reason is that of a task."""
    found = ask("/../../profile?component=count&seconds=3")
    assert found.status_code == 200
    assert (found.json()["task_ids"], found.json()["profile"]["lasted_s"]) == ([2], 3)
    assert found.json()["speedscope"]["name"] == "words: count"
    unknown = ask("/../../profile?component=coun")
    assert unknown.status_code == 404
    assert "no component 'coun' (nearest: 'count')" in unknown.json()["detail"]
    assert ask("/../../profile").status_code == 400
    busy = ask("/../../profile?component=count", RefusedError("task 2 is being profiled already"))
    assert (busy.status_code, busy.json()["detail"]) == (409, "task 2 is being profiled already")


def test_tuples_need_the_operator_and_the_topology(ask: Ask, observations: Observations) -> None:
    """Whoever reaches the address of the tracker would see data; the present configuration counts."""
    plans = observations.topology("near", "words").plans
    assert plans is not None
    by_operator = ask("/tuples")
    assert (by_operator.status_code, "--tuples" in by_operator.json()["detail"]) == (403, True)
    by_topology = ask("/tuples", tuples=True)
    assert by_topology.status_code == 403
    assert "topology.inspect.tuples of component 'count' is false" in by_topology.json()["detail"]
    allow(observations, plans, submitted=True, now=False)
    assert ask("/tuples", tuples=True).status_code == 403
    changed = allow(observations, plans, submitted=False, now=True)
    shown = ask("/tuples?tuples=4&seconds=3", tuples=True)
    assert (shown.status_code, shown.json()["tuples"]["wanted"]) == (200, 4)
    assert components_with_tuples(changed) == {"count"}
    assert components_with_tuples(None) == frozenset()
    assert {each.component: each.shows_tuples for each in task_rows(observations.topology("near", "words"))} == {
        "lines": False,
        "count": True,
    }
