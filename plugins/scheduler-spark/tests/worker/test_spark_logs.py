"""Logs of containers on workers: the copy is complete and bounded, and never blocks the task."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from heron.driver_kit.log import rename_older
from heron_scheduler_spark.messages.log_transfer import LogMirror, LogShipper
from heron_scheduler_spark.worker.container_logs import LogEcho

_SOON_S = 20.0


class Shipped:
    """A shipper, and the text that it has sent of the log ``x.log``."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "x.log"
        self.shipper = LogShipper(folder, self._receive)
        self.text = ""

    def look(self, *, final: bool = False) -> str:
        """Return all text that was sent so far."""
        self.shipper.ship(final=final)
        return self.text

    def write(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(text)

    def _receive(self, name: str, text: str) -> None:
        assert name == "x.log"
        self.text += text


@pytest.fixture
def shipped(tmp_path: Path) -> Iterator[Shipped]:
    found = Shipped(tmp_path)
    with closing(found.shipper):
        yield found


def test_whole_lines_are_sent_and_the_rest_at_the_end(shipped: Shipped) -> None:
    """Half a line waits for its end."""
    shipped.write("one\ntw")
    assert shipped.look() == "one\n"
    shipped.write("o\nthr")
    assert shipped.look() == "one\ntwo\n"
    assert shipped.look(final=True) == "one\ntwo\nthr"


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("more", [0, 50])
def test_a_renamed_log_is_sent_completely(shipped: Shipped, turns: int, more: int) -> None:
    """A full log is renamed, also twice between two looks. The new file may be longer than the old one."""
    shipped.write("one\n")
    shipped.look()
    for number in range(3):
        shipped.write(f"last {number}\n")
        for turn in range(turns):
            rename_older(shipped.log)
            shipped.write(f"first {number} {turn}\n" + "more\n" * more)
        shipped.look()
    firsts = [[f"first {number} {turn}\n" + "more\n" * more for turn in range(turns)] for number in range(3)]
    expected = "".join(f"last {number}\n{''.join(firsts[number])}" for number in range(3))
    assert shipped.look(final=True) == f"one\n{expected}"


def test_the_end_of_a_log_that_was_renamed_last_is_not_lost(shipped: Shipped) -> None:
    """The new file does not exist, because nothing was written to it."""
    shipped.write("one\n")
    shipped.look()
    shipped.write("two\n")
    rename_older(shipped.log)
    assert shipped.look(final=True) == "one\ntwo\n"


def test_a_log_that_was_emptied_without_a_copy_is_sent_from_its_start(shipped: Shipped) -> None:
    """There was no room for a copy."""
    shipped.write("one\n" * 10)
    shipped.look()
    os.truncate(shipped.log, 0)
    shipped.write("two\n")
    assert shipped.look() == "one\n" * 10 + "two\n"


def test_output_that_is_too_fast_is_left_out_and_counted(shipped: Shipped) -> None:
    """A task may print faster than the link transfers."""
    shipped.write("x" * 99 + "\n")
    shipped.look()
    shipped.write(("y" * 99 + "\n") * 30_000)
    rename_older(shipped.log)
    text = shipped.look(final=True)
    left_out = 3_000_000 - (1 << 20)
    assert f"\nheron: {left_out} bytes are left out" in text
    assert text.count("y") == pytest.approx(0.99 * (1 << 20), rel=0.001)


def test_the_copied_logs_of_a_long_run_are_bounded(tmp_path: Path) -> None:
    """As with all logs: the newest and two older ones."""
    mirror = LogMirror(tmp_path, max_bytes=100)
    for number in range(52):
        mirror.append("x.log", f"line {number} of a log\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.log", "x.log.1", "x.log.2"]
    assert all(path.stat().st_size < 130 for path in tmp_path.iterdir())
    newest = "".join((tmp_path / f"x.log{end}").read_text() for end in (".2", ".1", ""))
    assert newest.endswith("line 50 of a log\nline 51 of a log\n")


@pytest.mark.parametrize("name", ["../x.log", "/x.log", "x", "x.log\n", "", "a/b.err", "x" * 201 + ".log"])
def test_a_name_that_is_not_a_log_is_ignored(tmp_path: Path, name: str) -> None:
    """A peer with a key may send any name."""
    folder = tmp_path / "logs"
    folder.mkdir()
    LogMirror(folder).append(name, "text\n")
    assert [path.name for path in tmp_path.rglob("*")] == ["logs"]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def test_a_pipe_that_is_not_read_does_not_block(pipe: tuple[int, int]) -> None:
    """A JVM may pause. Lines without room are counted when it reads again."""
    reader, writer = pipe
    echo = LogEcho(writer, "heron t container 1")
    line = "x" * 1000
    for _ in range(1000):
        echo.write("task", f"{line}\n")  # a megabyte; would block if it waited for the pipe

    def close() -> None:
        echo.close()
        os.close(writer)

    closing = threading.Thread(target=close)
    read = bytearray(os.read(reader, 1 << 16))  # the writer goes on, and there is room again
    again = 0
    while b"no process read them" not in read:
        echo.write("task", "again\n")
        again += 1
        read += os.read(reader, 1 << 16)
    closing.start()
    while piece := os.read(reader, 1 << 16):
        read += piece
    closing.join(_SOON_S)
    assert read.startswith(f"heron t container 1 task | {line}\n".encode())
    left_out = sum(int(each.split()[4]) for each in read.splitlines() if b"are left out" in each)
    shown = read.count(b"x\n") + read.count(b"| again\n")
    assert left_out + shown == 1000 + again


def test_a_closed_pipe_is_ignored(pipe: tuple[int, int]) -> None:
    """The JVM is gone; the task detects that by other means."""
    reader, writer = pipe
    echo = LogEcho(os.dup(writer), "heron")
    os.close(writer)
    os.dup2(os.open(os.devnull, os.O_RDONLY), reader)  # no process reads the pipe now
    for _ in range(100):
        echo.write("task", "line\n")
    echo.close()
