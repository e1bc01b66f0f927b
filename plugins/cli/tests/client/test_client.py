"""The Python API: results, errors, read-only clients, and the profile under which a topology runs."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from heron.errors import AccessError, ConfigError, HeronError, PluginError, UsageError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind
from heron.spi.uploader import Uploader
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron_cli.catalog.third_party import open_guarded, open_guarded_statemgr
from heron_cli.client import Client, connect, profiles_of
from heron_cli.client import client as client_module
from heron_cli.main import heron
from heron_cli.profiles.overrides import split_overrides
from heron_cli.topologies.environment import ProfileChoice, find_profile, open_environment
from heron_cli.topologies.runs.kill_topology import HowKilled, KillResult

if TYPE_CHECKING:
    from heron_testing.builders.distributions import Install

RUN = ExecutionState("Words", "Words-1", 10.0, "me", "elsewhere", "here", "", "run", "logs", attached=False)


def write_run(profiles: Path, run: ExecutionState, profile: str = "here") -> None:
    """Put an execution state into the state manager of a profile."""
    statemgr = open_guarded_statemgr(find_profile(ProfileChoice(profile, profiles), ("statemgr",)).statemgr)
    statemgr.set(NodeKind.EXECUTION_STATE, run.topology, encode_execution_state(run))
    statemgr.close()


def test_an_empty_profile_has_no_topologies(profiles: Path) -> None:
    """No node needs to exist before the first topology."""
    with connect("here", config_path=profiles) as client:
        assert (client.profile, client.read_only) == ("here", False)
        assert client.names() == ()
        assert client.list().entries == ()
        assert client.packages() == ()


def test_errors_of_connect_are_heron_errors(profiles: Path) -> None:
    """A program can catch one class."""
    with pytest.raises(ConfigError, match="no profile 'heer'"):
        connect("heer", config_path=profiles)
    with pytest.raises(ConfigError, match=r"statemgr\.rot"):
        connect("here", config_path=profiles, overrides={"statemgr.rot": "/x"})
    with pytest.raises(PluginError, match=r"--without ffdd: .*nearest: 'ffd'"):
        connect("here", config_path=profiles, without=["ffdd"])
    with pytest.raises(UsageError, match=r"--plugin-path: .* is not a folder"):
        connect("here", config_path=profiles, plugin_path=[profiles / "none"])


ASKS: dict[str, Callable[[Client], object]] = {
    "status": lambda client: client.status("Words"),
    "metrics": lambda client: client.metrics("Words"),
    "watch_metrics": lambda client: list(client.watch_metrics("Words")),
    "logs": lambda client: client.logs("Words"),
    "follow_logs": lambda client: list(client.follow_logs("Words")),
    "activate": lambda client: client.activate("Words"),
    "restart": lambda client: client.restart("Words"),
    "kill": lambda client: client.kill("Words"),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
def test_a_topology_that_does_not_exist_is_a_usage_error(profiles: Path, ask: Callable[[Client], object]) -> None:
    """Nothing was changed, and the message names the topology."""
    with connect("here", config_path=profiles) as client, pytest.raises(UsageError, match="Words"):
        ask(client)


CHANGES: dict[str, Callable[[Client], object]] = {
    "activate": lambda client: client.activate("Words"),
    "deactivate": lambda client: client.deactivate("Words"),
    "restart": lambda client: client.restart("Words"),
    "kill": lambda client: client.kill("Words"),
    "submit": lambda client: client.submit("words.py"),
    "prune_packages": lambda client: client.prune_packages(older_than_s=0.0),
    "prune": lambda client: client.package_store().prune(0.0, 0),
    "tag": lambda client: client.package_store().tag("Words:live", "v1"),
    "untag": lambda client: client.package_store().untag("Words:live"),
    "change_state": lambda client: client.topology("Words").change_state("paused"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_read_only_client_refuses_changes(profiles: Path, change: Callable[[Client], object]) -> None:
    """The client sends no request, even when the topology exists."""
    write_run(profiles, RUN)
    with connect("here", config_path=profiles, read_only=True) as client, pytest.raises(AccessError, match="read-only"):
        change(client)


def test_a_read_only_list_changes_nothing(profiles: Path) -> None:
    """A dashboard must not remove reports that an operator needs."""
    write_run(profiles, replace(RUN, host=socket.gethostname()))
    with connect("here", config_path=profiles, read_only=True) as client:
        assert [each.state for each in client.list().entries] == ["lost"]
        assert client.names() == ("Words",)
    with connect("here", config_path=profiles) as client:
        assert client.list().entries == ()


def test_a_packing_that_is_not_installed_blocks_only_what_packs(profiles: Path) -> None:
    """`heron list`, `status` and `kill` do not pack."""
    overrides = {"packing.driver": "ffdd"}
    with connect("here", config_path=profiles, overrides=overrides) as client:
        assert client.list().entries == ()
        with pytest.raises(UsageError, match="no topology 'Words'"):
            client.kill("Words")
        with pytest.raises(HeronError, match="no packing driver 'ffdd' is installed"):
            client.submit("words.py")


def test_a_negative_time_limit_of_a_kill_is_refused(profiles: Path) -> None:
    """The command has the check of the client, and nothing is changed."""
    write_run(profiles, RUN)
    arguments = ["kill", "Words", "--profile", "here", "--config-path", str(profiles), "--timeout", "-1"]
    result = CliRunner().invoke(heron, arguments)
    assert result.exit_code == 2
    assert "the time limit -1 s is below 0 s; give the seconds that it has to stop by itself" in result.stderr
    with connect("here", config_path=profiles) as client:
        assert client.names() == ("Words",)


def test_status_uses_the_only_other_profile(profiles: Path) -> None:
    """A user forgets --profile; a note says which profile is used."""
    write_run(profiles, RUN)
    assert profiles_of("Words", config_path=profiles) == ("here",)
    result = CliRunner().invoke(heron, ["status", "Words", "--config-path", str(profiles), "--timeout", "0.2"])
    assert result.stderr.startswith("heron: note: topology 'Words' runs under profile 'here'\n")


def test_status_with_a_wrong_profile_says_where_the_topology_runs(profiles: Path, tmp_path: Path) -> None:
    """A profile that the user gave is not changed silently."""
    write_run(profiles, RUN)
    text = (profiles / "here.yaml").read_text().replace(f"{tmp_path}/state", f"{tmp_path}/state2")
    (profiles / "there.yaml").write_text(text)
    words = ["status", "Words", "--config-path", str(profiles), "--profile", "there"]
    result = CliRunner().invoke(heron, words)
    assert result.exit_code == 2
    assert "'Words' is not in profile 'there'; it runs under 'here': give `--profile here`" in result.stderr


def test_status_uses_the_other_profile_of_a_shared_state_manager(profiles: Path) -> None:
    """The scheduler of the chosen profile does not know the job."""
    write_run(profiles, replace(RUN, profile="there"))
    (profiles / "there.yaml").write_text("extends: here\n")
    words = ["status", "Words", "--config-path", str(profiles), "--timeout", "0.2"]
    result = CliRunner().invoke(heron, [*words, "--profile", "here"])
    assert result.exit_code == 2
    assert "it runs under 'there': give `--profile there`" in result.stderr
    (profiles / "local.yaml").write_text((profiles / "here.yaml").read_text())
    result = CliRunner().invoke(heron, words)
    assert result.stderr.startswith("heron: note: topology 'Words' runs under profile 'there'\n")
    (profiles / "there.yaml").unlink()
    assert "runs under" not in CliRunner().invoke(heron, [*words, "--profile", "here"]).stderr


def test_settings_are_not_used_with_another_profile(profiles: Path) -> None:
    """The other profile was found without them, so they may change the place of its state."""
    write_run(profiles, RUN)
    words = ["status", "Words", "--config-path", str(profiles), "--set", "run.run_dir=/tmp"]
    result = CliRunner().invoke(heron, words)
    assert result.exit_code == 2
    assert "it runs under 'here': give `--profile here`" in result.stderr


FROZEN = """
from dataclasses import dataclass
from heron.spi.uploader import Uploader

@dataclass(frozen=True)
class It(Uploader):
    spi_version = 1

    @classmethod
    def open(cls, options):
        return cls()

    @staticmethod
    def check(timeout_s):
        return f"asked for {timeout_s:g} s"

    @classmethod
    def upload(cls, package, topology):
        return f"{cls.__name__}:{package}/{topology}"

    def download(self, uri, target): ...
    def undo(self, uri): ...
"""


def test_a_frozen_driver_with_static_methods_works(install: Install) -> None:
    """A driver may be a frozen dataclass, and its methods may be static methods or class methods."""
    module = install("heron-uploader-frozen", "heron.uploader", "frozen", FROZEN)
    driver = open_guarded(DriverRef("uploader", "frozen", f"{module}:It"), Uploader)
    assert driver.check(2.0) == "asked for 2 s"
    assert driver.upload(Path("words"), "Words") == "It:words/Words"


UNOPENED = """
from heron.errors import ConfigError
from heron_scheduler_local.scheduler import LocalScheduler

class It(LocalScheduler):
    @classmethod
    def open(cls, options):
        raise ConfigError("no such cluster")
"""
CLOSED = """
from heron_statemgr_localfs.state_manager import LocalFsStateManager

class It(LocalFsStateManager):
    def close(self):
        print("closed")
        raise ZeroDivisionError("boom")
"""


def test_a_scheduler_that_does_not_open_is_reported(
    profiles: Path, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state manager is closed, and its failure does not hide the cause."""
    install("heron-statemgr-odd", "heron.statemgr", "odd", CLOSED)
    install("heron-scheduler-odd", "heron.scheduler", "odd", UNOPENED)
    overrides = {"statemgr.driver": "odd", "scheduler.driver": "odd"}
    with pytest.raises(ConfigError, match="no such cluster"):
        connect("here", config_path=profiles, overrides=overrides)
    profile = find_profile(ProfileChoice("here", profiles, split_overrides(overrides)))
    with pytest.raises(ConfigError, match="no such cluster"):
        open_environment(profile)
    assert capsys.readouterr().out == "closed\nclosed\n"


def test_observers_are_not_told_of_an_end_that_failed(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topology whose job is left may run on. One whose package is left has ended."""
    notified: list[str] = []

    class Observers:
        def notify(self, hook: str, **_: object) -> None:
            notified.append(hook)

    monkeypatch.setattr(client_module, "lifecycle_hooks", lambda _: contextlib.nullcontext(Observers()))
    with connect("here", config_path=profiles) as client:
        for left, told in ((("job: no answer",), 0), (("package: no answer",), 1), ((), 2)):
            result = KillResult("Words", RUN, HowKilled.ASKED, left=left)
            monkeypatch.setattr(client_module, "kill_topology", lambda *_, _result=result, **__: _result)
            assert client.kill("Words") is result
            assert len(notified) == told


BROKEN = """
from heron_statemgr_localfs.state_manager import LocalFsStateManager

class It(LocalFsStateManager):
    def {method}(self, *args, **kwargs):
        raise ZeroDivisionError("boom {root}")
"""


@pytest.mark.parametrize(
    "method", ["get", *(pytest.param(each, marks=pytest.mark.matrix) for each in ("list", "close", "check"))]
)
def test_a_driver_that_raises_is_named_and_the_rest_is_shown(
    profiles: Path, tmp_path: Path, install: Install, method: str
) -> None:
    """An exception of a third party's code is one line with driver, call and remedy, without a traceback."""
    install("heron-statemgr-odd", "heron.statemgr", "odd", BROKEN.replace("{method}", method))
    path = ["--config-path", str(profiles), "--set", "statemgr.driver=odd", "--set", f"statemgr.root={tmp_path}/odd"]
    for words in (["list", "here"], ["status", "Words", "--profile", "here"], ["doctor", "here"]):
        result = CliRunner().invoke(heron, [*words, *path])
        assert isinstance(result.exception, SystemExit | None), result.exception
    checked = CliRunner().invoke(heron, ["profiles", "check", "here", *path])
    assert isinstance(checked.exception, SystemExit | None), checked.exception
    if method in {"close", "check"}:
        assert f"{method} raised ZeroDivisionError: boom" in checked.output
        assert "heron plugins show statemgr odd" in checked.output
    everything = CliRunner().invoke(heron, ["plugins", "check", "statemgr", "--profile", "here", *path])
    assert isinstance(everything.exception, SystemExit | None), everything.exception
    assert "localfs" in everything.output


KEEPS_OUTPUT = """
from heron_scheduler_local.scheduler import LocalScheduler

class It(LocalScheduler):
    capabilities = frozenset({*LocalScheduler.capabilities, "output"})
"""


def test_logs_that_went_with_their_containers_are_an_error(profiles: Path, install: Install, tmp_path: Path) -> None:
    """The folder of the run is here, and empty: nothing would be printed, as if the topology had said nothing."""
    install("heron-scheduler-odd", "heron.scheduler", "odd", KEEPS_OUTPUT)
    folder = tmp_path / "logs"
    folder.mkdir()
    write_run(profiles, replace(RUN, log_dir=str(folder)))
    with connect("here", config_path=profiles, overrides={"scheduler.driver": "odd"}) as client:
        with pytest.raises(UsageError, match="'Words': this machine has none of its logs; its containers have them"):
            client.logs("Words")
        folder.joinpath("executor-0.log").write_text('{"message": "here"}\n')
        assert client.log_folder("Words") == folder
