"""Errors before anything is started: one line, exit code 2, nothing changed."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from heron_cli.main import heron

if TYPE_CHECKING:
    from conftest import WordsFile

CLASS = """
class Words(Topology):
    lines = Lines.spec(par=1)
    count = Count.spec(par=2, inputs=[lines])
"""


def command(*arguments: str) -> Result:
    """Call `heron`."""
    return CliRunner().invoke(heron, list(arguments))


def refused(result: Result) -> str:
    """Return the error message: one line, and for an error of the author's file the line that raised it."""
    assert result.exit_code == 2, result.output
    before, found, message = result.stderr.partition("heron: error: ")
    assert found, result.stderr
    assert not before or before.endswith("\n")
    assert len(message.strip().splitlines()) in {1, 2}, message
    assert "Traceback" not in result.output
    return message


def unchanged(tmp_path: Path) -> bool:
    """Return whether no node, package, log or job was written; hidden version counters do not count."""
    folders = ("state", "packages", "logs", "jobs")
    return not any(each.is_file() for folder in folders for each in (tmp_path / folder).rglob("[!.]*"))


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (
            "class W(Topology):\n    lines = Lines.spec(par=0)\n    count = Count.spec(par=1, inputs=[lines])",
            "0",
        ),
        (
            "class W(Topology):\n    lines = Lines.spec(par=-3)\n    count = Count.spec(par=1, inputs=[lines])",
            "-3",
        ),
        (
            "class W(Topology):\n    lines = Lines.spec(par=20000)\n    count = Count.spec(par=1, inputs=[lines])",
            "10000",
        ),
        (
            "class W(Topology):\n    lines = Lines.spec(par=1)\n"
            "    count = Count.spec(par=2000, inputs={lines: Grouping.fields('line')})",
            "1024",
        ),
        (
            "class W(Topology):\n    lines = Lines.spec(par=1)\n"
            "    count = Count.spec(par=1, inputs={lines: Grouping.fields('lime')})",
            "nearest: 'line'",
        ),
        (
            "class W(Topology):\n    lines = Lines.spec(par=1)\n"
            "    count = Count.spec(par=1, inputs={lines['wordz']: Grouping.SHUFFLE})",
            "wordz",
        ),
        (
            "from heron.api import GlobalStreamId\nclass W(Topology):\n    lines = Lines.spec(par=1)\n"
            "    count = Count.spec(par=1, inputs={GlobalStreamId('linez', 'default'): Grouping.SHUFFLE})",
            "nearest: 'lines'",
        ),
        (
            "from heron.api import GlobalStreamId\nclass W(Topology):\n    lines = Lines.spec(par=1)\n"
            "    a = Count.spec(par=1, inputs={lines: Grouping.ALL, GlobalStreamId('b', 'default'): Grouping.ALL})\n"
            "    b = Count.spec(par=1, inputs=[a])",
            "a -> b -> a",
        ),
        (
            "class W(Topology):\n    config = {'topology.stmgr': 2}\n    lines = Lines.spec(par=1)\n"
            "    count = Count.spec(par=1, inputs=[lines])",
            "nearest: 'topology.stmgrs'",
        ),
        ("b = TopologyBuilder('a/b')", "a/b"),
        ("b = TopologyBuilder('a.b')", "a.b"),
        ("import nowhere_else", "ModuleNotFoundError"),
    ],
)
def test_a_topology_that_cannot_run_is_refused(
    words_file: WordsFile, profiles: Path, tmp_path: Path, topology: str, message: str
) -> None:
    """Each error names the place, the value, and the known or allowed values."""
    result = command("run", str(words_file(topology)), "--profile", "here", "--config-path", str(profiles))
    assert message in refused(result)
    assert unchanged(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--profile", "locl"), "no profile 'locl' (nearest: 'local')"),
        (("--set", "statemgr.rot=/tmp"), "statemgr.rot"),
        (("--set", "statemgr.driver=localsf"), "no statemgr driver 'localsf' is installed (nearest: 'localfs')"),
        (("--set", "heron.tuple.max.byte=5"), "nearest: 'heron.tuple.max.bytes'"),
        (
            ("--set", "topology.component.output.bps=0"),
            "topology.component.output.bps: 0 bytes/s is below the minimum, 1 bytes/s; -1 switches it off",
        ),
        (("--set", "heron.network.host=nosuchif0"), "heron.network.host: 'nosuchif0' is neither an address nor"),
        (("--set", "heron.network.host=192.0.2.1"), "heron.network.host: cannot listen at '192.0.2.1'"),
        (("--set", "heron.tuple.max.bytes=5"), "5 bytes is below the minimum, 1024 bytes"),
        (("--set", "topology.stmgr=5"), "nearest: 'topology.stmgrs'"),
        (("--set", "engin.x=5"), "nearest: 'engine'"),
        (("--set", "nonsense"), "not of the form KEY=VALUE"),
        (("--set", "run.a=1", "--set", "run.a=2"), "given twice"),
        (("--set", "run.log_dri=/x"), "nearest: 'log_dir'"),
        (("--timeout", "0"), "--timeout: 0 s is not above 0 s"),
        (("--report", "/nowhere/report.json"), "folder '/nowhere' does not exist"),
        (("--config-path", "/nowhere"), "'/nowhere' is not a folder"),
        (("--set", f"run.run_dir={'/x' * 60}"), "the limit is 107 bytes"),
        (("--set", "run.run_dir=/sys"), "no run directory can be made in /sys"),
        (("--set", "run.log_dir=/sys/logs"), "/sys/logs"),
        (("--set", "statemgr.root=/sys/state"), "/sys/state"),
        (("--set", "uploader.root=/sys/packages"), "/sys/packages"),
        (("--set", "scheduler.root=/sys/jobs"), "/sys/jobs"),
    ],
)
def test_settings_without_effect_are_refused(
    words_file: WordsFile, profiles: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """A setting must not be ignored, and a folder must be writable before the run."""
    given = [] if "--profile" in arguments else ["--profile", "here"]
    given += [] if "--config-path" in arguments else ["--config-path", str(profiles)]
    result = command("run", str(words_file(CLASS)), *given, *arguments)
    assert message in refused(result)
    assert unchanged(tmp_path)


def test_unknown_commands_and_options_are_refused_by_click() -> None:
    """The exit code is 2 too."""
    assert command("rum").exit_code == 2
    assert command("run", "--unknown").exit_code == 2


@pytest.mark.parametrize("words", [("plan",), ("run",), ("submit", "here")])
def test_a_wrong_choice_does_not_start_the_authors_file(
    words: tuple[str, ...], words_file: WordsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may do anything when it is loaded."""
    module = import_module(f"heron_cli.commands.{words[0]}")
    monkeypatch.setattr(module, "LoadingTopology", lambda *_, **__: pytest.fail("the file was started"))
    assert "nonsense" in refused(command(*words, str(words_file(CLASS)), "--set", "nonsense"))


def test_a_plan_is_a_tree_or_json_and_changes_nothing(words_file: WordsFile, profiles: Path, tmp_path: Path) -> None:
    """Both show the data flow, the resources of each container, and the place of each task."""
    arguments = ("plan", str(words_file(CLASS)), "--profile", "here", "--config-path", str(profiles))
    tree = command(*arguments)
    assert tree.exit_code == 0, tree.output
    for text in ("spout lines: 1 task, words:Lines", "in lines:default by shuffle", "count/3", "topology manager"):
        assert text in tree.stdout
    document = json.loads(command(*arguments, "--json").stdout)
    assert document["topology"] == "Words"
    assert [each["component"] for each in document["physical"]["tasks"]] == ["lines", "count", "count"]
    assert unchanged(tmp_path)


def test_a_plan_can_be_packed_by_another_driver(words_file: WordsFile, profiles: Path) -> None:
    """The options of the packing of the profile do not apply to the other driver."""
    given = ("--profile", "here", "--config-path", str(profiles))
    chosen = ("--packing", "ffd", "--set", "packing.instance_ram=2GB")
    arguments = ("plan", str(words_file(CLASS)), *given, *chosen)
    picture = command(*arguments)
    assert picture.exit_code == 0, picture.output
    for text in ("(by ffd): 3 instances in 1 container", "2 x count: 1 cpu, 2.0 GiB memory", "cpu     ██"):
        assert text in picture.stdout
    packing = json.loads(command(*arguments, "--json").stdout)["packing"]
    assert packing["driver"] == "ffd"
    assert packing["limits"]["ram_bytes"] == 20 << 30
    assert packing["containers"][0]["used"]["ram_bytes"] == 6 << 30
    assert packing["containers"][0]["ram_bytes"] == 8 << 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--packing", "fdd"), "no packing driver 'fdd' is installed (nearest: 'ffd')"),
        (("--packing", "ffd", "--set", "packing.stmgr_ram=1GB"), "packing.stmgr_ram: unknown key"),
        (("--packing", "ffd", "--set", "topology.container.ram=1000"), "a container has room for 0 bytes: 1000 bytes"),
        (("--packing", "roundrobin", "--set", "topology.stmgrs=9"), "topology.stmgrs 9 exceeds the number"),
    ],
)
def test_the_error_for_a_plan_that_cannot_be_packed_has_the_reason(
    words_file: WordsFile, profiles: Path, arguments: tuple[str, ...], message: str
) -> None:
    """The error is that of a run."""
    given = ("--profile", "here", "--config-path", str(profiles))
    assert message in refused(command("plan", str(words_file(CLASS)), *given, *arguments))


def test_the_list_of_plugins_has_those_of_the_local_bundle() -> None:
    """They are listed by family, as a table and as JSON."""
    assert "heron-statemgr-localfs" in command("plugins", "list").stdout
    listed = json.loads(command("plugins", "list", "--json").stdout)
    assert ("scheduler", "local") in {(each["family"], each["name"]) for each in listed}


def test_help_names_every_command() -> None:
    """The help does not import the commands."""
    result = command("--help")
    assert result.exit_code == 0
    for name in ("run", "plan", "plugins"):
        assert name in result.stdout


def test_list_takes_its_profile_as_other_commands_do(profiles: Path) -> None:
    """All other commands about a topology have the option; two different profiles are a mistake."""
    place = ("--config-path", str(profiles))
    for words in (("here",), ("--profile", "here"), ("here", "--profile", "here")):
        result = command("list", *words, *place)
        assert (result.exit_code, result.output) == (0, "no topologies in profile here\n")
    message = refused(command("list", "here", "--profile", "there", *place))
    assert "two profiles are given, 'here' and --profile 'there'; give one of them" in message
