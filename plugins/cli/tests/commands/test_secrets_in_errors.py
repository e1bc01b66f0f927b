"""A secret in a message of a driver or server is in no output of a command and in no report."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heron.driver_kit.redaction import redact_for_command
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.report import decode_report
from heron.state_nodes.tmanager_location import TManagerLocation, encode_tmanager_location
from heron_cli.main import heron
from heron_cli.topologies.environment import Environment, ProfileChoice, find_profile, open_environment

SECRET = "hunter2-and-more"


@dataclass(frozen=True)
class Place:
    """A profile in which the folder of the state manager is a secret; errors of the driver contain the folder."""

    profiles: Path
    environment: Environment

    @property
    def statemgr(self) -> StateManager:
        """Open the state manager."""
        return self.environment.statemgr

    def cut(self, kind: NodeKind, topology: str) -> None:
        """Write a node, and then truncate it as a full disk does."""
        before = set(self._files())
        self.statemgr.set(kind, topology, b"x" * 100)
        for path in set(self._files()) - before:
            path.write_bytes(path.read_bytes()[:3])

    def command(self, *words: str) -> Result:
        """Call `heron` with the profile."""
        return CliRunner().invoke(heron, [*words, "--config-path", str(self.profiles)])

    def _files(self) -> list[Path]:
        return [each for each in self.profiles.parent.joinpath(SECRET).rglob("*") if each.is_file()]


@pytest.fixture
def place(profiles: Path, tmp_path: Path) -> Place:
    """Return the profile ``here`` with a reference to a file for its folder."""
    (tmp_path / "secret").write_text(str(tmp_path / SECRET))
    (tmp_path / "secret").chmod(0o600)
    path = profiles / "here.yaml"
    path.write_text(path.read_text().replace(f"{tmp_path}/state", f"'${{file:{tmp_path}/secret}}'"))
    return Place(profiles, open_environment(find_profile(ProfileChoice("here", profiles))))


def test_error_after_opening_hides_the_secret(place: Place) -> None:
    """Most errors of a state manager happen after it was opened."""
    place.cut(NodeKind.EXECUTION_STATE, "Words")
    calls = (("status", "Words", "--profile", "here"), ("list", "here"), ("list", "here", "--json"), ("doctor", "here"))
    outputs = [place.command(*each) for each in calls]
    assert all("(secret)" in each.output for each in outputs)
    assert SECRET not in "".join(each.output for each in outputs)


def test_answer_of_a_server_hides_the_secret(place: Place) -> None:
    """`plugins check` prints the answer of the driver."""
    for words in ((), ("--json",)):
        result = place.command("plugins", "check", "statemgr", "localfs", "--profile", "here", *words)
        assert "(secret)" in result.output
        assert SECRET not in result.output


def test_report_of_a_kill_hides_the_secret(place: Place, tmp_path: Path) -> None:
    """The report is kept for a day, and all users of the state manager can read it."""
    run = ExecutionState(
        topology="Words",
        topology_id="Words-1",
        submitted_at_s=1.0,
        user="me",
        host=socket.gethostname(),
        profile="here",
        package_uri="",
        run_dir=str(tmp_path / "heron-00000001"),
        log_dir="",
        attached=False,
        role="ads",
        env="prod",
    )
    place.statemgr.set(NodeKind.EXECUTION_STATE, "Words", encode_execution_state(run))
    place.cut(NodeKind.KEYS, "Words")
    location = encode_tmanager_location(TManagerLocation("tcp://127.0.0.1:1", "Words-1", 1, "nowhere"))
    place.statemgr.hold(NodeKind.TMANAGER_LOCATION, "Words", location)
    result = place.command("kill", "Words", "--profile", "here", "--json")
    report = place.statemgr.get(NodeKind.REPORT, "Words")
    assert report is not None
    assert "(secret)" in decode_report(report.value, "Words").status.error
    assert SECRET not in report.value.decode() + result.output


def test_secrets_of_two_profiles_stay_hidden_side_by_side(place: Place, tmp_path: Path) -> None:
    """A tracker uses many profiles at once, and reads them again with each client."""
    here = (place.profiles / "here.yaml").read_text()
    (tmp_path / "other").write_text(str(tmp_path / "another-secret"))
    (tmp_path / "other").chmod(0o600)
    (place.profiles / "there.yaml").write_text(here.replace(f"{tmp_path}/secret", f"{tmp_path}/other"))
    for name in ("here", "there"):
        find_profile(ProfileChoice(name, place.profiles))
    assert redact_for_command(f"{tmp_path / SECRET} {tmp_path / 'another-secret'}") == "(secret) (secret)"
