"""The process of an attempt: it opens what was sealed for it alone, and notes what becomes of its executor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from heron_scheduler_kit.attempt_process import NOTE, SEALED, Note
from heron_scheduler_kit.managed.launch_file import LaunchFile
from heron_scheduler_kit.sealing import SealKey
from heron_testing.contracts.parts.scheduler_bench import FAKE_EXECUTOR, Bench
from heron_testing.waiting import wait_until

_LIMIT_S = 30.0


class Attempt:
    """Starts the process with a launch file that was sealed for container 1, attempt 3."""

    def __init__(self, folder: Path, bench: Bench, closing: ExitStack) -> None:
        self._folder, self._bench, self._closing = folder, bench, closing
        key = folder / "key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        self.key = SealKey.read(key)

    def start(self, task: str, place: str = "task-1") -> subprocess.Popen[bytes]:
        spec = msgspec.to_builtins(self._bench.spec("t", 1, task))
        launch = LaunchFile({**spec, "attempt": 3}, FAKE_EXECUTOR, grace_s=1.0)
        sealed = self.key.seal(msgspec.json.encode(launch), "t-1", "task-1")
        words = [sys.executable, "-P", "-m", "heron_scheduler_kit.attempt_process", str(self.key.path), "t-1", place]
        environ = {**os.environ, SEALED: sealed}
        process = subprocess.Popen(words, cwd=self._folder, env=environ, stderr=subprocess.PIPE)
        self._closing.callback(process.communicate)
        self._closing.callback(process.kill)
        return process

    def note(self) -> Note:
        path = self._folder / NOTE
        return msgspec.json.decode(path.read_bytes(), type=Note) if path.exists() else Note()


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    bench = Bench(tmp_path, tmp_path / "run")
    bench.log_dir("t").mkdir(parents=True)
    with ExitStack() as closing:
        yield Attempt(tmp_path, bench, closing)


def test_it_notes_its_executor_and_ends_it_in_order(attempt: Attempt, tmp_path: Path) -> None:
    """The supervisor reads the note; nothing of the attempt stays on the machine."""
    bench = Bench(tmp_path, tmp_path / "run")
    killed = bench.run_dir("t") / "c1.2"
    killed.mkdir(parents=True)
    for each in (killed.parent, killed):
        each.chmod(0o700)
    (killed / "c1.json").write_text("a secret of an attempt that was killed")
    process = attempt.start("serve")
    found = bench.wait("t", 1, attempt=3)
    wait_until(lambda: attempt.note().pid == found.pid, _LIMIT_S, "the note has the executor")
    assert (found.spec_mode, found.run_dir_mode) == (0o600, 0o700)
    assert SEALED.encode() not in Path(f"/proc/{found.pid}/environ").read_bytes()
    process.send_signal(signal.SIGTERM)
    assert process.wait(_LIMIT_S) == 0
    assert attempt.note().error == ""
    assert not bench.run_dir("t").exists()


def test_a_failure_is_noted_with_its_reason(attempt: Attempt) -> None:
    """A cluster tells an exit code at most."""
    process = attempt.start("crash")
    assert process.wait(_LIMIT_S) == 1
    assert attempt.note().own
    assert "asked to crash" in attempt.note().error
    assert process.stderr is not None
    assert b"asked to crash" in process.stderr.read()


def test_a_launch_file_for_another_place_is_refused(attempt: Attempt) -> None:
    """Who can start tasks must not get the secrets of another one; the reason is noted."""
    assert attempt.start("serve", place="task-2").wait(_LIMIT_S) == 1
    assert "is of another run or place" in attempt.note().error
