"""From a file to tasks with its code: what is asked of the topology manager, and which packages are left."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from heron.errors import RefusedError, TopologyFailedError, UsageError
from heron.ipc.documents.status import CodeStatus, TopologyStatus
from heron.kernel.package import pack
from heron.planner.code_change import CodeChange, decode_change
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan
from heron.planner.physical_plan import PhysicalPlan, TopologyState, physical_plan
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import decode_packing_plan, encode_plan
from heron_cli.launch.code.code_update import CodeUpdate, update_code
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology
from heron_cli.launch.submission import manifest_of
from heron_cli.profiles.overrides import Overrides
from heron_cli.topologies.environment import Environment, ProfileChoice
from heron_cli.topologies.run_nodes import read_run
from heron_cli.topologies.running.code_request import CodeRequest
from heron_cli.topologies.running.remote_topology import RemoteTopology

PROGRAM = textwrap.dedent(
    """
    from heron.api import Bolt, Spout, Topology


    class Lines(Spout):
        outputs = ["line"]

        def next_tuple(self):
            self.end()


    class Count(Bolt):
        def process(self, tup):
            pass


    class Words(Topology):
        lines = Lines.spec(par=1)
        count = Count.spec(par=2, inputs=[lines])
    """
)
PACKING = PackingPlan(
    "plan",
    (
        ContainerPlan(
            1,
            tuple(InstancePlan("count" if task > 1 else "lines", task, task // 3, NO_RESOURCE) for task in (1, 2, 3)),
            NO_RESOURCE,
        ),
    ),
)


class Leading(RemoteTopology):
    """A topology whose leader is the test: it notes the requests, and goes through the phases of each."""

    choice: ProfileChoice

    def lead(self, *phases: str) -> None:
        """The phases after the next request; the last one stays."""
        self.phases = list(phases)
        self.asked: list[tuple[CodeChange, PackingPlan]] = []

    def begin_update(self, packing: bytes, base: str, owners: bytes = b"", code: bytes = b"") -> None:
        """Note it."""
        assert (base, owners) == ("plan", b"")
        if self.phases == ["refused"]:
            msg = "component 'count' has ended"
            raise RefusedError(msg)
        self.asked.append((decode_change(code), decode_packing_plan(packing, "p")))

    def status(self, *, control: bool = False, begun_s: float = 0.0) -> TopologyStatus:
        """Return the next phase."""
        del control, begun_s
        status = TopologyStatus("Words", "Words-1", "running", 1.0)
        if not self.asked:
            return status
        phase = self.phases.pop(0) if len(self.phases) > 1 else self.phases[0]
        if phase == "forgotten":
            return status
        change = self.asked[0][0]
        return replace(status, code=CodeStatus(change.package, phase, change.components, (4, 5), "it broke"))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The file of the running topology."""
    path = tmp_path / "author" / "words.py"
    path.parent.mkdir()
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def topology(environment: Environment, program: Path, profiles: Path, tmp_path: Path) -> Leading:
    """The program runs, with its package in the store."""
    with LoadingTopology(str(program), ()) as loading:
        loaded = loading.result()
    pack(loaded.root, loaded.files, manifest_of(loaded), tmp_path / "package")
    uri = environment.uploader.upload(tmp_path / "package", "Words")
    run = ExecutionState("Words", "Words-1", 1.0, "me", "here", "here", uri, "/run", "/log", attached=False)
    environment.statemgr.set(NodeKind.EXECUTION_STATE, "Words", encode_execution_state(run))
    environment.statemgr.set(NodeKind.TOPOLOGY, "Words", encode_plan(loaded.definition))
    environment.statemgr.set(NodeKind.PACKING_PLAN, "Words", encode_plan(PACKING))
    plan = physical_plan(
        PACKING, loaded.definition, (), version=1, epoch=1, topology_id="Words-1", state=TopologyState.RUNNING
    )
    set_plan(environment, plan)
    found = Leading(environment.statemgr, environment.scheduler, "Words", 20.0)
    found.lead("change", "complete")
    found.choice = ProfileChoice("here", profiles)
    return found


def set_plan(environment: Environment, plan: PhysicalPlan) -> None:
    environment.statemgr.set(NodeKind.PHYSICAL_PLAN, "Words", encode_plan(plan))


def give(environment: Environment, topology: Leading, program: Path, shown: list[str] | None = None) -> CodeUpdate:
    """Give the topology the code of the file."""

    def show(status: CodeStatus, compared: Sequence[str]) -> None:
        assert not compared
        if shown is not None:
            shown.append(status.phase)

    return update_code(environment, topology.choice, topology, CodeRequest(str(program), on_phase=show))


def stored(environment: Environment) -> tuple[int, tuple[str, ...]]:
    """How many packages there are, and those of new code that the execution state names."""
    run = read_run(environment.statemgr, "Words")
    assert run is not None
    return len(environment.uploader.packages()), run.more_packages


def test_the_tasks_of_a_component_with_other_code_are_replaced(
    environment: Environment, topology: Leading, program: Path
) -> None:
    """That of the submission stays in the store, because containers name it."""
    program.write_text(PROGRAM.replace("pass", "self.ack(tup)"))
    shown: list[str] = []
    done = give(environment, topology, program, shown)
    assert (done.changed, done.tasks, shown) == (("count",), (2, 3), ["change", "complete"])
    ((change, target),) = topology.asked
    assert (change.package, change.components, change.canary_s) == (done.package, ("count",), 0.0)
    assert [(each.task_id, each.package) for _, each in target.instances()] == [
        (1, ""),
        (4, done.package),
        (5, done.package),
    ]
    assert stored(environment) == (2, (done.package,))


def test_equal_code_asks_for_nothing(environment: Environment, topology: Leading, program: Path) -> None:
    program.write_text(f"# a comment\n{PROGRAM}")
    assert give(environment, topology, program).tasks == ()
    assert topology.asked == []
    assert stored(environment) == (1, ())


def test_other_options_with_equal_files_are_refused(environment: Environment, topology: Leading, program: Path) -> None:
    """The package of the submission is the running one too."""
    topology.choice = replace(topology.choice, overrides=Overrides(topology={"topology.debug": "true"}))
    with pytest.raises(UsageError, match="runs these files already; change values with --runtime-config"):
        give(environment, topology, program)
    assert topology.asked == []
    assert stored(environment) == (1, ())


@pytest.mark.parametrize("phase", ["returned", "forgotten"])
def test_the_package_of_code_that_returns_is_removed(
    environment: Environment, topology: Leading, program: Path, phase: str
) -> None:
    """A topology manager that has taken over knows no change, and the plan says what became of it."""
    topology.lead("change", phase)
    program.write_text(PROGRAM.replace("pass", "self.ack(tup)"))
    with pytest.raises(TopologyFailedError, match=r"runs its former code again: (it broke|another topology manager)"):
        give(environment, topology, program)
    assert stored(environment) == (1, ())


def test_a_refused_change_leaves_no_package(environment: Environment, topology: Leading, program: Path) -> None:
    topology.lead("refused")
    program.write_text(PROGRAM.replace("pass", "self.ack(tup)"))
    with pytest.raises(UsageError, match="component 'count' has ended"):
        give(environment, topology, program)
    assert stored(environment) == (1, ())


def test_values_that_are_configured_meanwhile_are_not_undone(
    environment: Environment, topology: Leading, program: Path
) -> None:
    """A program may take long to load."""
    program.write_text(PROGRAM.replace("pass", "self.ack(tup)"))

    def load() -> LoadedTopology:
        plan = topology.plans().physical
        assert plan is not None
        set_plan(environment, replace(plan, version=2, topology=replace(plan.topology, config={"limit": 2})))
        with LoadingTopology(str(program), ()) as loading:
            return loading.result()

    with pytest.raises(UsageError, match="the configuration of topology 'Words' has changed meanwhile; try again"):
        update_code(environment, topology.choice, topology, CodeRequest(str(program)), load)
    assert topology.asked == []
    assert stored(environment) == (1, ())


def test_code_that_does_not_fit_stores_nothing(environment: Environment, topology: Leading, program: Path) -> None:
    program.write_text(PROGRAM.replace('["line"]', '["text"]'))
    with pytest.raises(UsageError, match=r"stream 'default' of 'lines' has the fields \(text\), not \(line\)"):
        give(environment, topology, program)
    assert stored(environment) == (1, ())
