"""`heron hosts`: people see what topologies report, and block hosts for a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heron.clock import wall_s
from heron.spi.statemgr import NodeKind
from heron.state_nodes.host_report import COUNTS_S, HostReport, HostSigns, encode_host_report
from heron_cli.main import heron
from heron_cli.topologies.environment import Environment

Command = Callable[..., Result]


@pytest.fixture
def command(profiles: Path) -> Command:
    """Return a function that calls `heron hosts` with the profile of the tests."""

    def call(*arguments: str) -> Result:
        options = ("--profile", "here", "--config-path", str(profiles))
        return CliRunner().invoke(heron, ["hosts", *arguments, *options])

    return call


def report(environment: Environment, topology: str, age_s: float = 0.0) -> None:
    """Write a report of two hosts."""
    signs = (HostSigns("n1", 2, 1.02), HostSigns("n2", 4, 3.1, 1, looks=2))
    written = HostReport(topology, f"{topology}-1", wall_s() - age_s, signs)
    environment.statemgr.set(NodeKind.HOSTS, topology, encode_host_report(written))


def test_a_block_is_listed_with_its_reason_and_its_author(
    command: Command, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds a host empty wants to know whom to ask."""
    monkeypatch.setenv("LOGNAME", "ann")
    report(environment, "words")
    assert command("block", "n2", "--for", "2h", "--reason", "slow disk").output == "n2 is blocked for 2h by ann\n"
    lines = [line.split() for line in command("list").output.splitlines()]
    assert lines[0] == ["host", "tasks", "service", "time", "deaths", "reported", "by", "state"]
    assert lines[1] == ["n1", "2", "1.02", "x", "0", "words"]
    assert " ".join(lines[2]) == "n2 4 3.10 x 1 words blocked by ann, 2 h left: slow disk"
    assert " ".join(lines[3]) == "2 hosts reported by 1 topology, 1 blocked"


def test_programs_get_json(command: Command, environment: Environment) -> None:
    """Times are wall-clock seconds."""
    report(environment, "words")
    made = json.loads(command("block", "n3", "--for", "90s", "--json").output)
    assert made["host"] == "n3"
    found = json.loads(command("list", "--json").output)
    assert [each["host"] for each in found["reports"]] == ["n2", "n1"]  # the worst one first
    assert found["reports"][0]["slowdown"] == 3.1
    assert [(each["host"], each["until_s"]) for each in found["blocks"]] == [("n3", made["until_s"])]


def test_a_host_that_is_unblocked_is_left_alone(command: Command) -> None:
    """Otherwise the judge would block it again at its next look."""
    command("block", "n2")
    assert command("unblock", "n2").exit_code == 0
    found = json.loads(command("list", "--json").output)
    assert found["blocks"] == []
    assert found["allowed"].keys() == {"n2"}
    assert "n2" in command("list").output


def test_old_and_damaged_reports_are_left_out(command: Command, environment: Environment) -> None:
    """One topology that died, or has another version, must not hide the others."""
    report(environment, "words")
    report(environment, "gone", age_s=2 * COUNTS_S)
    environment.statemgr.set(NodeKind.HOSTS, "broken", b"{")
    found = json.loads(command("list", "--json").output)
    assert {each["topology"] for each in found["reports"]} == {"words"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("block", "n1,n2"), "'n1,n2' is not the name of a host"),
        (("block", "n1", "--for", "soon"), "--for 'soon' is no time such as 90s"),
        (("block", "n1", "--for", "0s"), "give a time above 0 s"),
        (("unblock", "n7"), "host 'n7' is not blocked; blocked: none"),
    ],
)
def test_mistakes_change_nothing(command: Command, arguments: tuple[str, ...], said: str) -> None:
    """A name with a comma would be two hosts for Slurm."""
    result = command(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert json.loads(command("list", "--json").output)["blocks"] == []
