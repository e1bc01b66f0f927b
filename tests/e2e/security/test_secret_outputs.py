"""The keys and passwords of a run in all that it shows: commands, JSON, pages, metrics, and the memory of user code."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest
from secret_places import files_with, keys_of, talkative
from strangers import answer_to, listening_ports

from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef
from heron.spi.statemgr import StateManager
from tracker_process import TrackerProcess

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_DRIVER = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_COMMANDS = (
    "status steady",
    "status steady --json",
    "metrics steady --json",
    "logs steady -n 1000 --json",
    "explain steady --json",
    "health steady --json",
    "stack steady numbers/1 --json",
    "trace steady --json",
    "checkpoints list steady --json",
    "list local --json",
    "profiles show local",
    "profiles check local --json",
    "plan {program} --json",
)
"""Every command that shows a run, a profile or a plan; it may refuse, and must not show a secret then either."""

_PROCESSES = ("executor-0", "tmanager-0", "stmgr-1")

_LEAST_COMMANDS = 10  # of them have an answer; the others need a checkpoint store, or traces


def test_no_key_or_password_is_shown_anywhere(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with drivers that log their passwords, a tracker that shows logs, a page of metrics, and a crash."""
    passwords = ["hunter2-by-variable", "hunter2-by-file"]
    monkeypatch.setenv("STATE_PASSWORD", passwords[0])
    file = sandbox.root / "password"
    file.touch(mode=0o600)
    file.write_text(passwords[1] + "\n", encoding="utf-8")
    profiles = talkative(sandbox, monkeypatch, file, ", {driver: prometheus, host: 127.0.0.1, port: 0}")
    options = ("--config-path", str(profiles))
    run = sandbox.start("steady.py", *options)
    run.until((run.out / "progress").exists, "the first counts")
    root: dict[str, object] = {"root": str(sandbox.home / ".heron" / "state")}
    state = open_driver(DriverRef("statemgr", "localfs", _DRIVER, root), StateManager)
    try:
        keys = keys_of(state, "steady")
    finally:
        state.close()
    secrets = [*passwords, *(pair.secret for pair in (keys.server, keys.member, keys.control, keys.reader))]
    for process in run.processes("instance"):
        assert _in_memory(process.pid, secrets) == set(), "user code could read it"
    (stmgr, *_) = run.processes("stmgr")
    assert keys.member.secret in _in_memory(stmgr.pid, secrets), "the search finds nothing"
    _crash(run)
    shown = {**_commands(sandbox, options, run), **_pages(sandbox, options), **_metrics(sandbox)}
    assert {name: secret for name, text in shown.items() for secret in secrets if secret in text} == {}
    (run.out / "stop").touch()
    run.wait()
    assert files_with(secrets, sandbox.root) == [file]


def _crash(run: HeronRun) -> None:
    """Let an instance and a stream manager end as a fault of native code ends them; each writes what it can."""
    for role in ("instance", "stmgr"):
        process = run.processes(role)[-1]
        process.send_signal(signal.SIGABRT)
        run.until(functools.partial(_has_ended, process), f"the end of a {role}")
    (run.out / "progress").unlink(missing_ok=True)
    run.until((run.out / "progress").exists, "counts after the crash")


def _has_ended(process: psutil.Process) -> bool:
    return not process.is_running()


def _commands(sandbox: Sandbox, options: tuple[str, ...], run: HeronRun) -> dict[str, str]:
    shown, answered = {}, 0
    program = str((sandbox.programs or Path()) / "steady.py")
    for each in _COMMANDS:
        words = each.format(program=program).split()
        arguments = ("--", "--out", str(run.out)) if words[0] == "plan" else ()
        ended = sandbox.start_command(*words, *options, *arguments)
        answered += ended.wait() == 0
        shown[each] = ended.stdout + ended.stderr
        assert shown[each], f"{each} shows nothing"
    assert answered >= _LEAST_COMMANDS, {each: text[:300] for each, text in shown.items()}
    return shown


def _pages(sandbox: Sandbox, options: tuple[str, ...]) -> dict[str, str]:
    """Every path of the tracker's description that only reads: the topology, one of its tasks, each kind of process."""
    tracker = TrackerProcess(sandbox, "--profile", "local", "--logs", "--tuples", *options)
    sandbox_has = f"{tracker.url}/api/v1/clusters/local/topologies/steady"
    shown: dict[str, str] = {}
    logs = 0
    with httpx.Client(timeout=30.0) as client:
        tracker.run.until(lambda: client.get(f"{sandbox_has}/metrics").status_code == 200, "the tracker knows it")
        paths = client.get(f"{tracker.url}/api/v1/openapi.json").json()["paths"]
        for path in [each for each, methods in paths.items() if "get" in methods and not each.endswith("/live")]:
            filled = path.replace("{cluster}", "local").replace("{topology}", "steady").replace("{task}", "1")
            for process in _PROCESSES if "{process}" in path else ("",):
                answer = client.get(f"{tracker.url}{filled.replace('{process}', process)}")
                shown[f"{path} {process}"] = answer.text
                if path.endswith("/logs"):
                    assert answer.status_code == 200, (path, process, answer.text)
                    logs += 1
    assert logs == 1 + len(_PROCESSES)
    tracker.run.process.terminate()
    tracker.run.wait()
    return {**shown, "tracker": tracker.run.all_output}


def _metrics(sandbox: Sandbox) -> dict[str, str]:
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    ports = [each for each in listening_ports(sandbox.home) if each.role == "heron.metricsmgr.main"]
    shown = {str(each): answer_to(each.number, request).decode() for each in ports}
    assert any("heron_" in each for each in shown.values())
    return shown


def _in_memory(pid: int, secrets: list[str]) -> set[str]:
    """The secrets in the writable memory of a process."""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if match is None:
                continue
            begin, end = int(match[1], 16), int(match[2], 16)
            with contextlib.suppress(OSError, ValueError, OverflowError):
                part = os.pread(memory.fileno(), end - begin, begin)
                found |= {each for each in secrets if each.encode() in part}
    return found
