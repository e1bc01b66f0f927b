"""The pipes of the client, with programs in its place: frames reach their channel, and a death is named."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import psutil
import pytest

from heron.errors import UsageError
from heron_connector_dlog import ClientDiedError, DlogSink, DlogSource, LogNamespace
from heron_connector_dlog.client_process import ClientProcess
from heron_connector_dlog.column_sink import DlogColumnSink
from heron_connector_dlog.columns import DlogColumns
from heron_connector_dlog.frames import Kind, frame, open_writer, read, texts_of, write
from heron_connector_dlog.record import BEGIN, Place
from heron_runtime_jvm.java_program import JavaError
from heron_testing.waiting import wait_until

WITHIN_S = 30.0
ECHO = """
import sys
data = sys.stdin.buffer.read(4 + 5 + 3)
sys.stdout.buffer.write(data[:4] + bytes([21]) + data[5:])
sys.stdout.flush()
sys.stdin.buffer.read()
"""
DIES = """
import sys
for number in range(30):
    print("line", number, file=sys.stderr)
sys.exit(3)
"""


ORPHANS = """
import os, signal, sys
from heron_connector_dlog.client_process import ClientProcess
process = ClientProcess([sys.executable, "-c", "import time; time.sleep(600)"], lambda *_: None, lambda: None)
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


class Heard:
    """What a process has told."""

    def __init__(self, program: str) -> None:
        self.frames: SimpleQueue[tuple[Kind, int, bytes]] = SimpleQueue()
        self.ends: SimpleQueue[bool] = SimpleQueue()
        command = [sys.executable, "-c", program]
        self.process = ClientProcess(command, lambda *heard: self.frames.put(heard), lambda: self.ends.put(True))


@pytest.mark.leaks_nothing
def test_frames_reach_who_listens_and_the_program_ends() -> None:
    """`close` leaves no process and no thread."""
    heard = Heard(ECHO)
    heard.process.send(Kind.ASK, 7, b"abc")
    assert heard.frames.get(timeout=WITHIN_S) == (Kind.ANSWER, 7, b"abc")
    heard.process.close()
    heard.process.close()
    assert heard.ends.get(timeout=WITHIN_S)
    heard.process.send(Kind.ASK, 7, b"to nobody")


@pytest.mark.leaks_nothing
def test_a_death_has_its_exit_code_and_the_last_lines() -> None:
    """A JVM without memory, or without a class, says so at the end of stderr."""
    heard = Heard(DIES)
    assert heard.ends.get(timeout=WITHIN_S)
    assert isinstance(heard.process.death, ClientDiedError)
    story = str(heard.process.death)
    assert f"process {heard.process.pid}) ended with exit code 3" in story
    assert story.endswith("line 29")
    assert "line 19" not in story
    heard.process.close()


@pytest.mark.leaks_nothing
def test_the_program_dies_with_its_parent() -> None:
    """Also before it reads its stdin, as a JVM that is still starting."""
    parent = subprocess.run([sys.executable, "-c", ORPHANS], capture_output=True, text=True, check=False, timeout=60)
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    wait_until(lambda: not psutil.pid_exists(int(parent.stdout)), WITHIN_S, "the end of the program")


def test_frames_have_the_bytes_of_the_table() -> None:
    """The README describes them for Java's side."""
    assert frame(Kind.MORE, 5, b"x") == b"\0\0\0\6\2\0\0\0\5x"
    assert read("ab", Place(1, 2, 3, 9), 4) == b"\0\0\0\2ab" + struct.pack(">qqqq", 1, 2, 3, 4)
    assert read("", BEGIN, 4) == b"\0\0\0\0" + struct.pack(">qqqq", 0, 0, 0, 4)
    assert open_writer("ab", "c", takes_over=True) == b"\0\0\0\2ab\0\0\0\1c\1"
    assert write(7, [b"a", b""]) == struct.pack(">qiii", 7, 2, 1, 0) + b"a"
    assert texts_of(b"\0\0\0\1a\0\0\0\2\xc3\xa4") == ["a", "ä"]


@pytest.mark.parametrize(
    ("make", "story"),
    [
        (lambda: LogNamespace("zk1:2181/logs", "lib/*"), "'zk1:2181/logs' is not distributedlog://HOST:PORT/PATH"),
        (lambda: LogNamespace("distributedlog://zk1:2181/logs", ""), "class_path is empty"),
        (
            lambda: LogNamespace("distributedlog://zk1:2181/logs", "lib/*", {"writeLockEnabled": True}),
            "'writeLockEnabled' is set by the connector itself",
        ),
        (lambda: DlogSource(logs(), []), "streams=.* is neither a name nor a list of names"),
        (lambda: DlogSource(logs(), "a", start="first"), "start='first' is not 'earliest' or 'latest'"),
        (lambda: DlogSource(logs(), "a", until="now"), "until='now' is not None or 'latest'"),
        (lambda: DlogSource(logs(), "a", truncated="ignore"), "truncated='ignore' is not 'error' or 'skip'"),
        (
            lambda: DlogColumns(DlogSource(logs(), "a"), columns=["date"]),
            r"no column 'date' \(nearest: 'data'\)",
        ),
        (lambda: DlogColumns(DlogSource(logs(), "a"), columns="data"), "columns='data' is not a list of one or more"),
        (lambda: DlogColumnSink(logs(), "a", data=""), "data is empty; give the name of a column"),
        (lambda: DlogSink[str](logs(), "a/b"), "stream='a/b' is not 1 to 100 letters"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(make: Callable[[], object], story: str) -> None:
    """The author sees the line."""
    with pytest.raises(UsageError, match=story):
        make()


def test_missing_jars_are_named(tmp_path: Path) -> None:
    """They are the user's, on each machine."""
    with pytest.raises(JavaError, match="has no jars"):
        LogNamespace("distributedlog://zk1:2181/logs", f"{tmp_path}/*").command()


def logs() -> LogNamespace:
    return LogNamespace("distributedlog://zk1:2181/logs", "/opt/distributedlog/lib/*")
