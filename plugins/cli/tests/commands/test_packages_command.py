"""`heron packages list` and `heron packages prune`, with packages in files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heron.errors import StateUnavailableError
from heron.spi.statemgr import Hold, NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron_cli.main import heron
from heron_cli.topologies.environment import Environment

DAY_S = 86400

Command = Callable[..., Result]


@pytest.fixture
def command(profiles: Path) -> Command:
    """Return a function that calls `heron packages` with the profile of the tests."""

    def call(*arguments: str) -> Result:
        options = ("--profile", "here", "--config-path", str(profiles))
        return CliRunner().invoke(heron, ["packages", *arguments, *options])

    return call


def store(environment: Environment, tmp_path: Path, name: str, content: str, age_days: float) -> str:
    """Store a package of that age."""
    file = tmp_path / "package"
    file.write_text(content)
    uri = environment.uploader.upload(file, name)
    path = Path(uri.removeprefix("file://"))
    then = path.stat().st_mtime - age_days * DAY_S
    os.utime(path, (then, then))
    return uri


def use(environment: Environment, topology: str, uri: str) -> None:
    """Write the state of a topology that uses the package."""
    state = ExecutionState(topology, f"{topology}-1", 0.0, "me", "here", "here", uri, "/run", "/log", attached=False)
    environment.statemgr.set(NodeKind.EXECUTION_STATE, topology, encode_execution_state(state))


def test_list_shows_owner_size_and_use(command: Command, environment: Environment, tmp_path: Path) -> None:
    """A user needs these values before a removal."""
    old = store(environment, tmp_path, "words", "old", 9)
    new = store(environment, tmp_path, "words", "newer", 0)
    use(environment, "words", new)
    output = command("list").stdout.splitlines()
    assert [line.split()[-1] for line in output[:2]] == [new, old]
    assert "in use by words" in output[0]
    assert "9 d" in output[1]
    assert output[2] == "2 packages, 8 B"
    listed = {each["uri"]: each for each in json.loads(command("list", "--json").stdout)}
    assert (listed[new]["topology"], listed[old]["topology"]) == ("words", None)
    assert (listed[old]["name"], listed[old]["size_bytes"], listed[old]["whole"]) == ("words", 3, True)


def test_prune_removes_old_packages_that_are_not_used(
    command: Command, environment: Environment, tmp_path: Path
) -> None:
    """Other packages stay, and `--dry-run` changes nothing."""
    old, used = store(environment, tmp_path, "a", "1", 9), store(environment, tmp_path, "a", "2", 9)
    young = store(environment, tmp_path, "b", "3", 1)
    use(environment, "a", used)
    looked = command("prune", "--dry-run")
    assert looked.stdout == f"would remove {old}\n1 package would be removed, 1 B\n"
    pruned = command("prune", "--json")
    assert pruned.exit_code == 0
    assert json.loads(pruned.stdout) == {"dry_run": False, "removed": [old], "failed": {}}
    assert {each.uri for each in environment.uploader.packages()} == {used, young}
    assert command("prune", "--older-than", "0.5", "--keep", "1").stdout == "0 packages removed, 0 B\n"
    assert command("prune", "--older-than", "0.5").stdout.startswith(f"removed {young}\n")


def test_prune_spares_a_topology_that_another_command_is_changing(
    command: Command, environment: Environment, tmp_path: Path
) -> None:
    """Between the upload and the state, only the lock shows that a package is in use."""
    uri = store(environment, tmp_path, "words", "1", 9)
    hold = environment.statemgr.hold(NodeKind.LOCK, "words", b"a submission")
    try:
        result = command("prune")
    finally:
        hold.release()
    assert result.exit_code == 1
    assert f"{uri} stays: another command is at work on topology 'words'" in result.stderr
    assert command("prune").exit_code == 0


@pytest.mark.parametrize("arguments", [("tag", "words:live", "v1"), ("untag", "words:live")], ids=lambda each: each[0])
def test_tags_wait_for_a_command_that_changes_the_topology(
    command: Command, environment: Environment, arguments: tuple[str, ...]
) -> None:
    """The end of a topology looks at the tags, and then removes the package; no tag may come between."""
    hold = environment.statemgr.hold(NodeKind.LOCK, "words", b"a kill")
    try:
        result = command(*arguments)
    finally:
        hold.release()
    assert result.exit_code == 2
    assert "another command is at work on topology 'words'; try again later" in result.stderr
    assert "has no tags" in command(*arguments).stderr


def test_prune_does_not_report_what_the_store_keeps(
    command: Command, environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some registries refuse to delete, and their profiles say so; then an `undo` removes nothing."""
    uri = store(environment, tmp_path, "words", "1", 9)
    monkeypatch.setattr(type(environment.uploader), "undo", lambda *_: None)
    result = command("prune")
    assert (result.exit_code, result.stdout) == (1, "0 packages removed, 0 B\n")
    assert f"{uri} stays: its store keeps it" in result.stderr


def test_prune_goes_on_after_a_name_that_no_topology_can_have(
    command: Command, environment: Environment, tmp_path: Path
) -> None:
    """A store may have files of other programs; they must not block the removal."""
    uris = [store(environment, tmp_path, name, name, 9) for name in ("a", "b.dotted", "c")]
    result = command("prune", "--json")
    assert result.exit_code == 0
    assert sorted(json.loads(result.stdout)["removed"]) == sorted(uris)


def test_prune_lists_the_removed_packages_when_the_state_manager_fails(
    command: Command, environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished removals are reported; the state manager is not asked again for the remaining packages."""
    for number, name in enumerate("abc"):
        store(environment, tmp_path, name, name, 9 + number)
    asked: list[str] = []
    manager = type(environment.statemgr)
    really = manager.hold

    def hold(self: StateManager, kind: NodeKind, topology: str, value: bytes) -> Hold:
        asked.append(topology)
        if len(asked) > 1:
            msg = "the state manager is away"
            raise StateUnavailableError(msg)
        return really(self, kind, topology, value)

    monkeypatch.setattr(manager, "hold", hold)
    result = command("prune", "--json")
    assert result.exit_code == 1
    output = json.loads(result.stdout)
    assert (len(output["removed"]), set(output["failed"].values())) == (1, {"the state manager is away"})
    assert asked == ["a", "b"]


def test_prune_removes_nothing_while_a_state_cannot_be_read(
    command: Command, environment: Environment, tmp_path: Path
) -> None:
    """The package of an unreadable topology is unknown."""
    store(environment, tmp_path, "words", "1", 9)
    environment.statemgr.set(NodeKind.EXECUTION_STATE, "odd", b"not JSON")
    result = command("prune")
    assert result.exit_code == 2
    assert "execution state of topology 'odd' cannot be read" in result.stderr
    assert len(environment.uploader.packages()) == 1


def test_a_negative_age_or_number_is_refused(command: Command) -> None:
    """A negative age would remove all packages."""
    assert command("prune", "--older-than", "-1").exit_code == 2
    assert command("prune", "--keep", "-1").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [("tag", "words:live", "v1"), ("untag", "words:live"), ("show", "words:live")],
    ids=lambda each: each[0],
)
def test_tags_need_an_uploader_that_has_them(
    command: Command, environment: Environment, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """The message names the remedy; packages of any uploader are still listed."""
    store(environment, tmp_path, "words", "1", 9)
    result = command(*arguments)
    assert result.exit_code == 2
    assert "LocalfsUploader has no tags; use a profile whose uploader has them, such as oci" in result.stderr
    assert json.loads(command("list", "--json").stdout)[0]["tags"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of the two"),
        (("words.py", "--package", "words:live"), "give one of the two"),
        (("--package", "words:live", "--", "--speed"), "give one of the two"),
        (("--package", "words"), "not of the form NAME:TAG"),
        (("--package", "words:live"), "has no tags"),
    ],
)
def test_submit_takes_a_file_or_a_package(profiles: Path, arguments: tuple[str, ...], message: str) -> None:
    """A package has its own file and arguments."""
    result = CliRunner().invoke(heron, ["submit", "here", "--config-path", str(profiles), *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
