"""`heron checkpoints` and `--from-checkpoint`, with checkpoints in files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace as replaced

from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE, TOPOLOGY_STATEFUL_START_FROM
from heron.checkpoints.archive import CheckpointArchive, places_of
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest, TaskSnapshot
from heron.clock import wall_s
from heron.errors import CheckpointError, ConfigError, HeronError, TopologyFailedError, UnreachableError, UsageError
from heron.ipc.documents.status import CheckpointStatus, TopologyStatus
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.launch.loading.loaded import LoadedTopology
from heron_cli.launch.prepare import Prepared, load_target, prepare
from heron_cli.launch.start_from import start_from
from heron_cli.main import heron
from heron_cli.profiles import Profile
from heron_cli.profiles.overrides import Overrides
from heron_cli.topologies.checkpoint_list import delete_checkpoints, list_checkpoints, open_archive, wait_for_checkpoint
from heron_cli.topologies.environment import ProfileChoice, find_profile
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.view.checkpoint_text import status_lines

Command = Callable[..., Result]

GROUPS = 1024
TOPOLOGY = """
class Words(Topology):
    lines = Lines.spec()
    count = Count.spec(par=2, inputs={lines: Grouping.fields("line")})
"""


@pytest.fixture
def root(profiles: Path, tmp_path: Path) -> Path:
    """Give the profile of the tests a checkpoint store; return its folder."""
    folder = tmp_path / "checkpoints"
    path = profiles / "here.yaml"
    path.write_text(f"{path.read_text()}\ncheckpoint: {{driver: localfs, root: {folder}}}\n")
    return folder


@pytest.fixture
def saved(root: Path, profiles: Path) -> CheckpointArchive:
    """Return the checkpoints Words-1/1 and Words-1/2; the second one needs a payload of the first."""
    assert not root.exists()
    archive = open_archive(found_profile(profiles), "Words")
    first = save(archive, CheckpointId("Words-1", 1), {3: b"three", 4: b"four"})
    second = save(archive, CheckpointId("Words-1", 2), {4: b"FOUR"})
    kept = {**second.tasks[0].groups, 3: first.tasks[0].groups[3]}
    archive.save_manifest(replaced(second, tasks=(replaced(second.tasks[0], groups=kept),)))
    return archive


def found_profile(profiles: Path) -> Profile:
    """Read the profile of the tests."""
    return find_profile(ProfileChoice("here", profiles))


def save(archive: CheckpointArchive, at: CheckpointId, groups: dict[int, bytes]) -> CheckpointManifest:
    """Save a checkpoint with one task of `count`."""
    name = archive.task_object(at, 2)
    payloads = tuple(groups.values())
    archive.save(name, payloads)
    task = TaskSnapshot(2, "count", groups=dict(zip(groups, places_of(name, payloads), strict=True)), align_s=0.25)
    made = CheckpointManifest("Words", at.run, at.number, wall_s() - 180, 0.5, GROUPS, (task,))
    archive.save_manifest(made)
    return made


def damage(root: Path, number: int) -> None:
    """Cut the manifest of a checkpoint."""
    path = root / "Words" / "Words-1" / f"{number:010d}" / "manifest"
    path.write_bytes(path.read_bytes()[:-3])


@pytest.fixture
def command(profiles: Path) -> Command:
    """Return a function that calls `heron checkpoints Words` with the profile of the tests."""

    def call(*arguments: str, answer: str = "", name: str = "Words") -> Result:
        options = ("--profile", "here", "--config-path", str(profiles))
        return CliRunner().invoke(heron, ["checkpoints", name, *arguments, *options], input=answer)

    return call


def test_list_shows_the_newest_first(saved: CheckpointArchive, command: Command) -> None:
    """The topology does not run; the store has its checkpoints."""
    assert saved.checkpoints()
    output = command("list").stdout.splitlines()
    assert output[1].split() == ["Words-1/2", "3", "min", "9", "B", "1", "0.50", "s", "newest"]
    assert output[2].split()[0] == "Words-1/1"
    document = json.loads(command("list", "--json").stdout)
    assert [(each["id"], each["size_bytes"], each["newest"]) for each in document] == [
        ("Words-1/2", 9, True),
        ("Words-1/1", 9, False),
    ]


def test_list_of_an_unknown_topology_is_empty(root: Path, command: Command) -> None:
    """No checkpoint is not an error; a name that is a path is one."""
    assert command("list").stdout == "Words has no complete checkpoints\n"
    refused = command("list", name="../Words")
    assert (refused.exit_code, "is not a topology name" in refused.stderr) == (2, True)
    assert not root.exists()


def test_a_torn_manifest_is_listed_as_damaged(saved: CheckpointArchive, root: Path, command: Command) -> None:
    """The others are listed all the same, and the newest that can be read is marked."""
    assert len(saved.checkpoints()) == 2
    damage(root, 2)
    output = command("list").stdout.splitlines()
    assert output[1].split() == ["Words-1/2", "damaged"]
    assert output[2].endswith("newest")
    assert "Words-1/2 is damaged: " in output[3]
    assert "bytes are torn or changed" in output[3]
    shown = command("show", "latest")
    assert (shown.exit_code, "use another checkpoint" in shown.stderr) == (2, True)


def test_a_list_reads_nothing_more_after_its_time(saved: CheckpointArchive) -> None:
    """A store that does not answer would cost its time for each checkpoint."""
    assert [each.damage for each in list_checkpoints(saved, within_s=60.0)] == ["", ""]
    late = list_checkpoints(saved, within_s=0.0)
    assert [(each.manifest, each.newest) for each in late] == [(None, False)] * 2
    assert (late[0].damage, late[0].unread) == ("", "the store took longer than 0 s for the newer ones")


def test_show_prints_tasks_and_objects(saved: CheckpointArchive, command: Command) -> None:
    """The second checkpoint refers to an object of the first."""
    assert saved.checkpoints()
    text = command("show", "latest").stdout
    assert "Words-1/2 of Words, taken " in text
    assert "slowest task: count/2, 0.250 s" in text
    document = json.loads(command("show", "Words-1/2", "--json").stdout)
    assert document["objects"] == ["Words/Words-1/0000000001/task-2", "Words/Words-1/0000000002/task-2"]
    assert document["tasks"][0]["groups"] == [3, 4]


@pytest.mark.parametrize(
    ("checkpoint", "error"),
    [
        ("Words-1/3", "topology 'Words' has no checkpoint 'Words-1/3'; complete checkpoints: Words-1/2, Words-1/1"),
        ("3", "checkpoint '3': not an id; give RUN/NUMBER"),
        ("../../x/1", "has no checkpoint '../../x/1'"),
    ],
)
def test_show_refuses_what_is_not_there(
    saved: CheckpointArchive, command: Command, checkpoint: str, error: str
) -> None:
    """The error lists the checkpoints that exist."""
    assert saved.checkpoints()
    result = command("show", checkpoint)
    assert (result.exit_code, error in result.stderr) == (2, True)


def test_a_profile_without_a_store_is_an_error(command: Command) -> None:
    """The error names the file to change."""
    result = command("list")
    assert result.exit_code == 2
    assert "profile 'here' has no checkpoint store; add `checkpoint: {driver: NAME}` to " in result.stderr


def test_delete_asks_and_keeps_what_another_needs(saved: CheckpointArchive, command: Command) -> None:
    """Without a yes nothing changes; afterwards the other checkpoint still loads."""
    declined = command("delete", "Words-1/1", answer="n\n")
    assert (declined.exit_code, len(saved.checkpoints())) == (1, 2)
    assert "nothing was deleted" in declined.stderr
    assert command("delete", "Words-1/1", answer="y\n").stdout.endswith("1 checkpoint of Words deleted\n")
    (left,) = saved.checkpoints()
    payloads = [saved.load(each) for each in saved.manifest(left).tasks[0].groups.values()]
    assert payloads == [b"FOUR", b"three"]


def test_delete_all_leaves_no_files(saved: CheckpointArchive, root: Path, command: Command) -> None:
    """The topology does not run, so it needs none."""
    assert command("delete", "--all", "--yes").exit_code == 0
    assert saved.checkpoints() == ()
    assert [each for each in root.rglob("*") if each.is_file()] == []


@pytest.mark.parametrize("arguments", [(), ("--all", "Words-1/1"), ("Words-1/7",), ("7",)])
def test_delete_refuses_a_wrong_choice(saved: CheckpointArchive, command: Command, arguments: tuple[str, ...]) -> None:
    """Nothing is deleted."""
    assert command("delete", "--yes", *arguments).exit_code == 2
    assert len(saved.checkpoints()) == 2


def test_delete_refuses_while_another_cannot_be_read(saved: CheckpointArchive, root: Path, command: Command) -> None:
    """The payloads that a damaged manifest needs are unknown; both together can be deleted."""
    damage(root, 2)
    refused = command("delete", "--yes", "Words-1/1")
    assert (refused.exit_code, "delete it in the same command" in refused.stderr) == (2, True)
    assert len(saved.checkpoints()) == 2
    assert command("delete", "--yes", "Words-1/1", "Words-1/2").exit_code == 0
    assert saved.checkpoints() == ()


def test_delete_refuses_what_the_running_topology_restores(saved: CheckpointArchive) -> None:
    """Its tasks would not find their state after a failure."""
    with pytest.raises(UsageError, match="Words-1/2: the running topology restores it after a failure; kill"):
        delete_checkpoints(saved, saved.checkpoints(), {"Words-1/2"})
    assert len(saved.checkpoints()) == 2


class AskedTopology(RemoteTopology):
    """A running topology whose states are given; the last one stays."""

    def __init__(self, *states: CheckpointStatus, timeout_s: float = 20.0) -> None:
        self.name = "Words"
        self.timeout_s = timeout_s
        self.states = list(states)
        self.asked = 0

    @property
    def run(self) -> ExecutionState:
        """The run Words-1."""
        return ExecutionState("Words", "Words-1", 1.0, "me", "here", "here", "", "run", "logs", attached=False)

    def status(self, *, control: bool = False, begun_s: float = 0.0) -> TopologyStatus:
        """Return the next state."""
        del begun_s
        assert control == (not self.asked)
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return TopologyStatus("Words", "Words-1", "running", 1.0, checkpoints=state)

    def take_checkpoint(self) -> None:
        """Count the request."""
        self.asked += 1


def test_take_waits_for_a_checkpoint_that_began_afterwards() -> None:
    """The checkpoint under way may lack what the user has just seen."""
    states = [CheckpointStatus(4, 3), CheckpointStatus(4, 4), CheckpointStatus(5, 5)]
    topology = AskedTopology(*states)
    assert wait_for_checkpoint(topology) == CheckpointId("Words-1", 5)
    assert topology.asked == 1


def test_take_reports_a_failure_and_the_time_limit() -> None:
    """A failure of the checkpoint that was under way before does not count."""
    states = [
        CheckpointStatus(4, 3),
        CheckpointStatus(4, 3, failed=1),
        CheckpointStatus(5, 3, failed=2, last_error="full"),
    ]
    with pytest.raises(TopologyFailedError, match="'Words': the checkpoint failed: full; the topology goes on"):
        wait_for_checkpoint(AskedTopology(*states))
    waiting = CheckpointStatus(4, 3, waits_for="task 2")
    with pytest.raises(UnreachableError, match="after 0 s: it waits for task 2; it continues"):
        wait_for_checkpoint(AskedTopology(waiting, timeout_s=0.0))


@pytest.mark.usefixtures("root")
def test_take_needs_a_running_topology(command: Command) -> None:
    """Nothing answers."""
    result = command("take")
    assert (result.exit_code, "topology 'Words' is not running" in result.stderr) == (2, True)
    assert command("take", "--timeout", "0").exit_code == 2


def test_the_status_names_checkpoints_failures_and_restores() -> None:
    """A topology of another mode has no line."""
    assert list(status_lines(None, 0.0)) == []
    assert list(status_lines(CheckpointStatus(1, waits_for="task 2"), 0.0)) == [
        "no checkpoint is complete yet; checkpoint 1 waits for task 2"
    ]
    status = CheckpointStatus(
        7, 6, 100.0, 0.5, 2048, failed=1, last_error="the disk is full", restores=2, source="w-1/6", last_loss="a death"
    )
    assert list(status_lines(status, 140.0)) == [
        "checkpoint 6 is complete for 40 s, 2.0 KiB in 0.50 s",
        "1 checkpoint failed; the last one: the disk is full",
        "2 restores, the last one from checkpoint w-1/6: a death",
    ]


def prepared(path: Path, profile: Profile, mode: str = "EFFECTIVELY_ONCE") -> Prepared:
    """Load and pack the topology of the tests with that reliability mode."""
    made: LoadedTopology = load_target(str(path), (), ProfileChoice())
    config = {**made.definition.config, TOPOLOGY_RELIABILITY_MODE: mode}
    return prepare(replace(made, definition=replace(made.definition, config=config)), profile, Overrides())


@pytest.mark.parametrize("checkpoint", ["latest", "Words-1/2"])
def test_the_configuration_names_the_checkpoint(
    saved: CheckpointArchive, profiles: Path, words_file: Callable[..., Path], checkpoint: str
) -> None:
    """`latest` is resolved before anything is written, so the topology starts from what was checked."""
    assert saved.checkpoints()
    profile = found_profile(profiles)
    before = prepared(words_file(TOPOLOGY), profile)
    after = start_from(before, profile, checkpoint).loaded.definition
    assert after.config[TOPOLOGY_STATEFUL_START_FROM] == "Words-1/2"
    assert TOPOLOGY_STATEFUL_START_FROM not in start_from(before, profile, "").loaded.definition.config


@pytest.mark.parametrize(
    ("mode", "checkpoint", "kind", "error"),
    [
        (
            "ATLEAST_ONCE",
            "latest",
            UsageError,
            "mode ATLEAST_ONCE without checkpoints; set it to EFFECTIVELY_ONCE",
        ),
        ("EFFECTIVELY_ONCE", "Words-1/9", CheckpointError, "complete checkpoints: Words-1/2, Words-1/1"),
        ("EFFECTIVELY_ONCE", "newest", CheckpointError, "not an id; give RUN/NUMBER"),
    ],
)
def test_a_start_that_cannot_work_is_refused(
    saved: CheckpointArchive,
    profiles: Path,
    words_file: Callable[..., Path],
    mode: str,
    checkpoint: str,
    kind: type[HeronError],
    error: str,
) -> None:
    """The error has both values and the remedy."""
    assert saved.checkpoints()
    profile = found_profile(profiles)
    with pytest.raises(kind, match=error):
        start_from(prepared(words_file(TOPOLOGY), profile, mode), profile, checkpoint)


def test_a_start_checks_the_state_and_the_store(
    saved: CheckpointArchive, root: Path, profiles: Path, words_file: Callable[..., Path]
) -> None:
    """A component that is gone, a torn manifest, and a profile without a store."""
    profile = found_profile(profiles)
    made = prepared(words_file(TOPOLOGY), profile)
    newest = saved.manifest(saved.checkpoints()[-1])
    saved.save_manifest(replaced(newest, number=3, tasks=(replaced(newest.tasks[0], component="gone"),)))
    with pytest.raises(CheckpointError, match="has state of component 'gone'"):
        start_from(made, profile, "latest")
    damage(root, 3)
    with pytest.raises(CheckpointError, match="torn or changed"):
        start_from(made, profile, "latest")
    with pytest.raises(ConfigError, match="has no checkpoint store"):
        start_from(made, replace(profile, checkpoint=None), "latest")


def test_options_that_exclude_each_other_are_refused(words_file: Callable[..., Path], profiles: Path) -> None:
    """Neither the simulator nor a dry run reads the store."""
    path, options = str(words_file(TOPOLOGY)), ["--from-checkpoint", "latest", "--config-path", str(profiles)]
    run = CliRunner().invoke(heron, ["run", path, "--simulate", "--profile", "here", *options])
    assert (run.exit_code, "the simulator takes no checkpoints" in run.stderr) == (2, True)
    submit = CliRunner().invoke(heron, ["submit", "here", path, "--dry-run", *options])
    assert (submit.exit_code, "--dry-run does not check it" in submit.stderr) == (2, True)
