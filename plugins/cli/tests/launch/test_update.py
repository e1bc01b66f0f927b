"""`heron update`: its options, its text and JSON, and what it does with containers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace as replaced

from heron.errors import TopologyFailedError, UsageError
from heron.ipc.documents.status import TopologyStatus, UpdateStatus
from heron.planner.key_owners import KeyOwners
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import PhysicalPlan, TopologyState
from heron.spi.scheduler import ContainerSpec, ContainerStatus, JobStatus, SchedulerState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import encode_plan
from heron_cli.commands.update import _parsed
from heron_cli.launch.rebalance import Rebalance, TaskLoad
from heron_cli.launch.update import TopologyUpdate, plan_update, run_update
from heron_cli.topologies.environment import Environment, ProfileChoice
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.runtime_config import ConfigChange, parse_changes
from heron_cli.view.update_text import config_as_json, config_lines, update_as_json, update_lines
from heron_testing.builders import bolt, spout, stream, subscription, topology

if TYPE_CHECKING:
    from conftest import IdleScheduler

EACH = Resource(1.0, 1 << 20, 1 << 20)
WORD, COUNT, NEW = (
    InstancePlan("word", 1, 0, EACH),
    InstancePlan("count", 2, 0, EACH),
    InstancePlan("count", 3, 1, EACH),
)
SMALL = PackingPlan("small", (ContainerPlan(1, (WORD, COUNT), EACH),), 2)
LARGE = PackingPlan("large", (*SMALL.containers, ContainerPlan(2, (NEW,), EACH)), 3)
UP = TopologyUpdate("words", SMALL, LARGE, {"count": 512}, 1.25)
DOWN = TopologyUpdate("words", LARGE, replace(SMALL, last_task_id=3), {"count": 512})


def test_the_option_is_repeatable_and_may_hold_several_numbers() -> None:
    """The second form is that of Heron."""
    assert _parsed(("a:2", "b:3 c:4", "a:2")) == {"a": 2, "b": 3, "c": 4}
    assert _parsed(("namespace:a:2",)) == {"namespace:a": 2}


@pytest.mark.parametrize("value", ["a", "a:", ":2", "a:two", "a:-1", "a:1.5"])
def test_another_form_is_refused_with_an_example(value: str) -> None:
    """The packing algorithm checks the numbers."""
    with pytest.raises(UsageError, match="give COMPONENT:TASKS, such as count:4"):
        _parsed((value,))


def test_two_numbers_for_a_component_are_refused() -> None:
    """One of them is a mistake."""
    with pytest.raises(UsageError, match="component 'a' has two numbers, 2 and 3"):
        _parsed(("a:2 a:3",))


def test_a_value_of_the_configuration_is_json_or_text() -> None:
    """As in Heron, a component may come before the key."""
    options = ("limit=7", "count:limit=8", "count:name=a=b", "count:on=true", "namespace:count:rate=0.5", "empty=")
    assert parse_changes(options) == {
        "": {"limit": 7, "empty": ""},
        "count": {"limit": 8, "name": "a=b", "on": True},
        "namespace:count": {"rate": 0.5},
    }


@pytest.mark.parametrize("option", ["limit", "=7", ":limit=7", "count:=7", ""])
def test_another_form_of_a_value_is_refused_with_an_example(option: str) -> None:
    """An empty component is a mistake: the topology has no name here."""
    with pytest.raises(UsageError, match=r"give \[COMPONENT:\]KEY=VALUE, such as count:limit=7"):
        parse_changes((option,))


def test_two_values_for_a_key_are_refused() -> None:
    """One of them is a mistake."""
    with pytest.raises(UsageError, match="'count:limit' has two values, 7 and 8"):
        parse_changes(("count:limit=7", "count:limit=8"))


def test_the_text_of_a_changed_configuration_has_both_values() -> None:
    """The JSON has them too."""
    changes = (ConfigChange("count", "limit", 5, 7), ConfigChange("", "name", None, "a"))
    assert list(config_lines("words", changes)) == ["count: limit: 5 -> 7", 'words: name: no value -> "a"']
    assert list(config_lines("words", ())) == ["words: nothing to change"]
    assert config_as_json("words", changes[:1]) == {
        "topology": "words",
        "changes": [{"component": "count", "key": "limit", "before": 5, "after": 7}],
    }


def test_the_text_names_tasks_containers_and_key_groups() -> None:
    """A dry run has the same lines without the last."""
    assert list(update_lines(UP)) == [
        "count: 1 -> 2 tasks, 512 key groups move",
        "  + task count/3 in container 2",
        "  + container 2",
        "  containers need 1 -> 2 cores and 1.0 MiB -> 2.0 MiB of memory",
        "words: the update is complete after 1.2 s",
    ]
    assert list(update_lines(DOWN)) == [
        "count: 2 -> 1 tasks, 512 key groups move",
        "  - task count/3 in container 2",
        "  - container 2",
        "  containers need 2 -> 1 cores and 2.0 MiB -> 1.0 MiB of memory",
    ]
    sized = replace(DOWN, moved_bytes={"count": 3 << 20})
    assert next(update_lines(sized)) == "count: 2 -> 1 tasks, 512 key groups with 3.0 MiB of state move"
    away = PackingPlan(
        "away", (ContainerPlan(1, (WORD,), EACH), ContainerPlan(2, (replace(COUNT, task_id=3),), EACH)), 3
    )
    assert list(update_lines(TopologyUpdate("words", SMALL, away, {"count": 1024}))) == [
        "count: 1 tasks, 1024 key groups move",
        "  + task count/3 in container 2",
        "  - task count/2 in container 1",
        "  + container 2",
        "  containers need 1 -> 2 cores and 1.0 MiB -> 2.0 MiB of memory",
    ]
    again = replace(UP, restored=("word", "count"), took_s=None)
    assert list(update_lines(again))[-1] == "  word, count: return to a checkpoint and process again what came since"
    assert list(update_lines(TopologyUpdate("words", SMALL, SMALL, {}))) == ["words: nothing to change"]


def test_a_rebalance_shows_the_loads_that_were_measured_and_those_that_are_expected() -> None:
    """Also when nothing moves: the loads say why."""
    loads = (TaskLoad(2, "count", 9000.4, 5000.2), TaskLoad(3, "count", 1000.0, 5000.2))
    moving = Rebalance({"count": KeyOwners.of((2, 3, 3))}, loads)
    update = TopologyUpdate("words", LARGE, LARGE, {"count": 1}, rebalance=moving)
    assert list(update_lines(update)) == [
        "  task count/2: 9,000 -> 5,000 tuples/s",
        "  task count/3: 1,000 -> 5,000 tuples/s",
        "count: 2 tasks, 1 key groups move",
    ]
    still = TopologyUpdate("words", LARGE, LARGE, {}, rebalance=Rebalance({}, loads[1:]))
    assert list(update_lines(still))[1:] == ["words: nothing to change"]
    assert update_as_json(update)["loads"] == [
        {"task_id": 2, "component": "count", "now_per_s": 9000.4, "expected_per_s": 5000.2},
        {"task_id": 3, "component": "count", "now_per_s": 1000.0, "expected_per_s": 5000.2},
    ]


def test_the_json_has_all_parts() -> None:
    """`took_s` is null in a dry run."""
    assert update_as_json(DOWN) == {
        "topology": "words",
        "before": {"word": 1, "count": 2},
        "after": {"word": 1, "count": 1},
        "added": [],
        "removed": [{"task_id": 3, "component": "count", "container_id": 2}],
        "added_containers": [],
        "removed_containers": [2],
        "moved_key_groups": {"count": 512},
        "moved_bytes": None,
        "loads": None,
        "resources": {
            "before": {"cpu": 2.0, "ram_bytes": 2 << 20, "disk_bytes": 2 << 20},
            "after": {"cpu": 1.0, "ram_bytes": 1 << 20, "disk_bytes": 1 << 20},
        },
        "restored": [],
        "took_s": None,
    }
    assert update_as_json(UP)["took_s"] == 1.25
    assert update_as_json(replace(UP, moved_bytes={"count": 7}))["moved_bytes"] == {"count": 7}


class Leading(RemoteTopology):
    """A topology whose leader is the test: it notes the requests, and `statuses` are its answers."""

    def lead(self, statuses: Sequence[TopologyStatus], events: list[str]) -> None:
        """Set the answers; the last is repeated."""
        self.statuses, self.events = list(statuses), events

    def begin_update(self, packing: bytes, base: str, owners: bytes = b"", code: bytes = b"") -> None:
        """Note it."""
        assert packing
        assert not owners + code
        self.events.append(f"begin from {base}")

    def withdraw_update(self, reason: str) -> None:
        """Note it."""
        self.events.append(f"withdraw: {reason}")

    def status(self, *, control: bool = False, begun_s: float = 0.0) -> TopologyStatus:
        """Return the next answer."""
        del begun_s
        assert not control
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@pytest.fixture
def events(scheduler: IdleScheduler, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order; the scheduler has a container 7 of an update whose command was killed."""
    found: list[str] = []
    containers = {0, 1, 2, 7}

    def update(_scheduler: object, _topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        found.append(f"add {[each.container_id for each in add]}, remove {list(remove)}")
        containers.difference_update(remove)

    def status(_scheduler: object, _topology: str) -> JobStatus:
        present = tuple(ContainerStatus(each, True, 1, "") for each in sorted(containers))
        return JobStatus(SchedulerState.RUNNING, present, "words-1")

    monkeypatch.setattr(type(scheduler), "capabilities", frozenset({"update"}))
    monkeypatch.setattr(type(scheduler), "update", update)
    monkeypatch.setattr(type(scheduler), "status", status)
    return found


def run_down(environment: Environment, events: list[str], *updates: UpdateStatus | None) -> TopologyUpdate:
    """Remove task 3 and container 2; the topology manager has these updates, one after another."""
    run = ExecutionState("words", "words-1", 1.0, "me", "here", "here", "file:x", "/run", "/log", attached=False)
    environment.statemgr.set(NodeKind.EXECUTION_STATE, "words", encode_execution_state(run))
    status = TopologyStatus("words", "words-1", "running", 1.0)
    with Leading(environment.statemgr, environment.scheduler, "words", 20.0) as topology:
        topology.lead([replace(status, update=each) for each in updates], events)
        return run_update(environment, ProfileChoice("here"), topology, DOWN, lambda each: events.append(each.phase))


def phase(name: str, target: str = "small") -> UpdateStatus:
    return UpdateStatus(2, name, target, (), (3,))


def test_an_update_changes_containers_only_after_it_has_begun(environment: Environment, events: list[str]) -> None:
    """Before, they may belong to the update of another command. At the end it removes only its own."""
    assert run_down(environment, events, phase("prepare"), phase("switch"), phase("complete")).took_s is not None
    begun = ["begin from large", "add [], remove [7]"]
    assert events == [*begun, "prepare", "switch", "complete", "add [], remove [2]"]
    environment.statemgr.close()


@pytest.mark.parametrize("present", [None, phase("prepare", "of another command")])
def test_the_outcome_is_in_the_packing_plan_when_the_topology_manager_has_forgotten_it(
    environment: Environment, events: list[str], present: UpdateStatus | None
) -> None:
    """Another topology manager leads, or the next update has begun."""
    environment.statemgr.set(NodeKind.PACKING_PLAN, "words", encode_plan(LARGE))
    with pytest.raises(TopologyFailedError, match="was withdrawn when another topology manager took over"):
        run_down(environment, events, present)
    environment.statemgr.set(NodeKind.PACKING_PLAN, "words", encode_plan(SMALL))
    assert run_down(environment, events, present).took_s is not None
    environment.statemgr.close()


def test_a_withdrawn_update_keeps_the_containers(environment: Environment, events: list[str]) -> None:
    """The message has the reason of the topology manager."""
    with pytest.raises(TopologyFailedError, match="was withdrawn, nothing has changed: too slow"):
        run_down(environment, events, replaced(phase("withdrawn"), waits_for="too slow"))
    assert "add [], remove [2]" not in events
    environment.statemgr.close()


def test_a_topology_that_starts_is_not_updated(environment: Environment, events: list[str]) -> None:
    """A leader has written a plan without tasks, of which nobody can tell the owners of key groups."""
    definition = topology(spout("word", stream("word")), bolt("count", subscription("word")))
    claimed = PhysicalPlan(0, 1, "words-1", definition, TopologyState.RUNNING, (), ())
    environment.statemgr.set(NodeKind.PACKING_PLAN, "words", encode_plan(SMALL))
    environment.statemgr.set(NodeKind.PHYSICAL_PLAN, "words", encode_plan(claimed))
    with (
        Leading(environment.statemgr, environment.scheduler, "words", 20.0) as remote,
        pytest.raises(UsageError, match=r"'words' is starting; only a running topology .*: `heron status words` tells"),
    ):
        plan_update(environment, remote, {"count": 2})
    assert events == []
    environment.statemgr.close()
