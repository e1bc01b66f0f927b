"""The report of a worker when a profile is checked."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import msgspec
import pytest

from heron.driver_kit.core_version import core_version
from heron.errors import SchedulerError
from heron.spi.driver import DriverRef, ReferringOption
from heron_scheduler_spark.settings.redacted_spec import redact_driver
from heron_scheduler_spark.worker.worker_report import Question, report

LOCALFS = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
ZOOKEEPER = "heron_statemgr_zookeeper.state_manager:ZookeeperStateManager"
HERE = os.uname().nodename


def ask(*others: DriverRef, driver: tuple[str, int] | None = None, core: str = "") -> str:
    """Call the check as the command does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        described = tuple(redact_driver(json.loads(msgspec.json.encode(each))) for each in others)
        question = Question(core or core_version(), driver or listening.getsockname()[:2], described)
        (said,) = report([msgspec.json.encode(question).decode()])
        return said


def test_a_complete_worker_reports_success(tmp_path: Path) -> None:
    """The report lists the usable drivers."""
    state = DriverRef("statemgr", "localfs", LOCALFS, {"root": str(tmp_path)})
    sink = DriverRef("metricsink", "graphite", "no.such.module:Sink")  # the check does not open it
    assert f"on {HERE}, which has the use of statemgr localfs, metricsink graphite" in ask(state, sink)


def test_a_driver_that_is_not_reached_is_named() -> None:
    """The report has the address, and the option that changes it."""
    with pytest.raises(SchedulerError, match=rf"{HERE} does not reach .* 127\.0\.0\.1:9: .*scheduler\.driver_host"):
        ask(driver=("127.0.0.1", 9))


def test_a_different_core_version_is_named() -> None:
    """The report has both versions."""
    with pytest.raises(SchedulerError, match=rf"{HERE} has heron-core {core_version()}, and the command 0\.0\.1"):
        ask(core="0.0.1")


@pytest.mark.parametrize(("family", "entry"), [("statemgr", ZOOKEEPER), ("metricsink", "no.such.module:Sink")])
def test_a_secret_that_is_not_on_the_worker_is_named_by_its_path(tmp_path: Path, family: str, entry: str) -> None:
    """The check covers every driver and does not print the secret."""
    options: dict[str, object] = {"password": "kept-to-itself-4711"}
    referring = (ReferringOption(("password",), f"${{file:{tmp_path}/absent}}"),)
    made = DriverRef(family, "some", entry, options, ("kept-to-itself-4711",), referring)
    with pytest.raises(SchedulerError, match=rf"on {HERE}: {family} driver 'some': .*absent cannot be read") as caught:
        ask(made)
    assert "4711" not in str(caught.value)


def test_a_state_manager_that_is_not_reached_from_there_is_named() -> None:
    """The command itself may reach it."""
    made = DriverRef("statemgr", "zookeeper", ZOOKEEPER, {"hosts": "127.0.0.1:9", "root": "/heron", "timeout_s": 0.5})
    with pytest.raises(SchedulerError, match=rf"on {HERE}: statemgr driver 'zookeeper': .*127\.0\.0\.1:9"):
        ask(made)


def test_a_checkpoint_store_that_cannot_be_used_there_is_named(tmp_path: Path) -> None:
    """A task would find it out at the first checkpoint only."""
    root = tmp_path / "checkpoints"
    made = DriverRef("checkpoint", "localfs", "heron_checkpoint_localfs:LocalfsCheckpointStore", {"root": str(root)})
    assert "which has the use of checkpoint localfs" in ask(made)
    root.touch()
    with pytest.raises(SchedulerError, match=rf"on {HERE}: checkpoint driver 'localfs': .*checkpoints: cannot be used"):
        ask(made)
