"""The keys of a running topology and the passwords of its drivers: the places that may contain them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import psutil
import pytest
from secret_places import check_holders, files_with, keys_of, shown_by, talkative

from heron.driver_kit.loading import open_driver
from heron.errors import AccessError, HeronError
from heron.ipc.keys import ClientKind, new_keys
from heron.ipc.query import TManagerClient
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.tmanager_location import decode_tmanager_location

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_DRIVER = "heron_statemgr_localfs.state_manager:LocalFsStateManager"


@pytest.mark.guarantee
def test_no_secret_is_visible_and_no_foreign_connection_is_accepted(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run in three containers: its command lines, environments, logs, readable files and ports.

    One password is from a variable and one from a file, for drivers that log theirs in every process.

    Guarantee: no secret of a topology is visible, and no foreign connection is accepted.

    Guarantee: passwords of drivers are in private files only.
    """
    passwords = ["hunter2-by-variable", "hunter2-by-file"]
    monkeypatch.setenv("STATE_PASSWORD", passwords[0])
    file = sandbox.root / "password"
    file.touch(mode=0o600)
    file.write_text(passwords[1] + "\n", encoding="utf-8")
    run = sandbox.start("steady.py", "--config-path", str(talkative(sandbox, monkeypatch, file)))
    run.until((run.out / "progress").exists, "the first counts")
    state = open_driver(
        DriverRef("statemgr", "localfs", _DRIVER, {"root": str(sandbox.home / ".heron" / "state")}), StateManager
    )
    try:
        keys = keys_of(state, "steady")
        location = state.get(NodeKind.TMANAGER_LOCATION, "steady")
        assert location is not None
        endpoint = decode_tmanager_location(location.value, "steady").endpoint
    finally:
        state.close()
    _bother(_ports(run))
    strange = new_keys().connecting_as(ClientKind.CONTROL)
    with TManagerClient(endpoint, strange) as stranger, pytest.raises(AccessError, match="has other keys"):
        stranger.change_state("killed", 5.0)
    with TManagerClient(endpoint, keys.connecting_as(ClientKind.READER)) as reader:
        with pytest.raises(HeronError, match="read-only"):
            reader.change_state("killed", 5.0)
        assert reader.status(5.0).state == "running"
    secrets = [pair.secret for pair in (keys.server, keys.member, keys.control, keys.reader)]
    command, *others = _processes(run)
    _look_for(secrets, sandbox, [command, *others], {"steady", "tmanager.json", "stmgr.json", "metricsmgr.json"})
    assert "STATE_PASSWORD" in command.environ()  # the operator's own file, and the only one
    _look_for(passwords, sandbox, others, {"password", "cN.json", "tmanager.json", "metricsmgr.json"})
    (run.out / "stop").touch()
    run.finished()
    assert files_with([*secrets, *passwords], sandbox.root) == [file]
    output = sandbox.log_text("*.log")
    for text in ("state manager signs in with (secret)", "sink signs in with (secret)"):
        assert text in output


def _processes(run: HeronRun) -> list[psutil.Process]:
    roles = ("supervisor", "executor", "tmanager", "stmgr", "metricsmgr", "instance")
    found = [psutil.Process(run.process.pid), *(each for role in roles for each in run.processes(role))]
    assert len(found) == 1 + 1 + 3 + 1 + 2 + 3 + 4, found
    return found


def _look_for(secrets: list[str], sandbox: Sandbox, processes: list[psutil.Process], files: set[str]) -> None:
    """Check that no process shows it, and that only these files contain it, which only their owner can read."""
    assert shown_by(secrets, processes) == []
    check_holders(secrets, sandbox.root, files)


def _ports(run: HeronRun) -> list[int]:
    """Return the network ports of the run: the topology manager's and each stream manager's."""
    listening = {}
    for process in _processes(run):
        for each in process.net_connections(kind="tcp"):
            if each.status == psutil.CONN_LISTEN:
                assert each.laddr.ip == "127.0.0.1"
                listening[each.laddr.port] = process.pid
    owners = {process.pid for role in ("tmanager", "stmgr") for process in run.processes(role)}
    assert set(listening.values()) == owners
    assert len(listening) == len(owners) == 3
    return list(listening)


def _bother(ports: list[int]) -> None:
    """Connect as a port scanner does."""
    for port in ports:
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 64, b"\xff" * 1000, b""):
            with socket.create_connection(("127.0.0.1", port)) as scanner:
                scanner.sendall(data)
