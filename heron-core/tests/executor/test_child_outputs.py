"""What children print reaches bounded files and every reader: no line is lost, torn or repeated."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from io import FileIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.driver_kit.followed_log import FollowedLog, lock_folder
from heron.executor import child_outputs
from heron.executor.child_outputs import PIPE_BYTES, ChildOutput, OutputFile
from heron_testing.fake_clock import FakeClock

LIMIT = 100
BLOCK = 2 * PIPE_BYTES


def parts(path: Path) -> list[bytes]:
    """The contents of the parts that exist, the newest first."""
    found = []
    for each in (path, path.with_name(f"{path.name}.1"), path.with_name(f"{path.name}.2")):
        with suppress(FileNotFoundError):
            found.append(each.read_bytes())
    return found


def read_all(log: FollowedLog) -> bytes:
    """What the log has now, to its end."""
    return b"".join(iter(lambda: log.read(64), b""))


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """The lock of a reader of all outputs."""
    descriptor = lock_folder(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def test_a_full_file_is_renamed_at_the_end_of_a_line(tmp_path: Path) -> None:
    """The newest lines are kept, whole, within the limit of each file; all files are private."""
    path = tmp_path / "x-1.out"
    lines = [b"line %d\n" % number for number in range(200)]
    with closing(OutputFile(path, LIMIT)) as file:
        for each in range(0, 200, 7):
            assert file.append(b"".join(lines[each : each + 7])) == b""
    found = parts(path)
    assert len(found) == 3
    assert b"".join(reversed(found)) == b"".join(lines)[-sum(map(len, found)) :]
    assert all(len(each) <= LIMIT and each.startswith(b"line ") and each.endswith(b"\n") for each in found)
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_a_line_that_is_longer_than_a_file_stays_in_one_piece(tmp_path: Path) -> None:
    """Up to a block; a child that never ends its line must not fill the disk."""
    path = tmp_path / "x-1.out"
    with closing(OutputFile(path, LIMIT)) as file:
        for _ in range(3):
            assert file.append(b"x" * 90) == b""
        assert file.append(b"\nnext\n") == b""
        assert parts(path) == [b"next\n", b"x" * 270 + b"\n"]
        for _ in range(40):
            assert file.append(b"y" * 65536) == b""
    assert all(len(each) < LIMIT + BLOCK for each in parts(path))


def test_the_open_line_of_a_former_child_is_ended(tmp_path: Path) -> None:
    """A task that was killed within a line is started again; its first line is not a part of the old one."""
    path = tmp_path / "x-1.out"
    for text in (b"one\nha", b"two\n"):
        with closing(OutputFile(path, LIMIT)) as file:
            file.append(text)
    assert path.read_bytes() == b"one\nha\ntwo\n"


def test_a_line_of_which_a_full_disk_took_a_part_does_not_join_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader would take both for one line."""
    path = tmp_path / "x-1.out"

    def full(file: FileIO, data: bytes) -> None:
        file.write(data[:4])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with closing(OutputFile(path, LIMIT)) as file:
        with monkeypatch.context() as disk:
            disk.setattr(child_outputs, "_write", full)
            with pytest.raises(OSError, match="No space left"):
                file.append(b"torn line\n")
        file.append(b"next\n")
    assert path.read_bytes() == b"torn\nnext\n"


@pytest.mark.parametrize("begun", [True, False])
def test_a_part_that_a_reader_needs_stays_until_the_reader_is_too_late(tmp_path: Path, *, begun: bool) -> None:
    """A reader of the folder keeps also outputs that it has not opened yet. A reader that has stopped loses a part."""
    path, clock = tmp_path / "x-1.out", FakeClock()
    block = b"".join(b"%07d\n" % number for number in range(4096))
    with (
        folder_lock(tmp_path),
        closing(FollowedLog(path, hold=True)) as log,
        closing(OutputFile(path, 4096, clock)) as file,
    ):
        file.append(b"first\n")
        read = read_all(log) if begun else b""
        sent, waiting = b"first\n", b""
        while not waiting:
            waiting = file.append(block)
            sent += block
        assert 4096 < path.stat().st_size <= 4096 + PIPE_BYTES
        clock.advance(29.0)
        assert file.append(waiting) == waiting
        read += read_all(log)
        assert file.append(waiting) == b"", "the reader has gone on"
        assert read + read_all(log) == sent
        assert log.gaps == 0
        while not (waiting := file.append(block)):
            pass
        clock.advance(31.0)
        assert file.append(waiting) == b"", "the reader has stopped"
        for _ in range(5):
            assert file.append(block) == b"", "nothing waits again for a reader that has stopped"
        assert log.gaps == 0
        read_all(log)
        assert log.gaps == 1


def test_a_reader_that_ends_holds_nothing_up(tmp_path: Path) -> None:
    """Its locks end with it."""
    path = tmp_path / "x-1.out"
    block = b"x" * 63 + b"\n"
    with closing(OutputFile(path, 4096)) as file:
        with folder_lock(tmp_path):
            while not file.append(block * 512):
                pass
        assert file.append(block * 512) == b""
        assert path.stat().st_size <= 4096


def test_a_pipe_is_read_to_its_end_when_its_child_ends(tmp_path: Path) -> None:
    """What a child has printed last is kept, although a reader is behind; the tail names the reason of a death."""
    path = tmp_path / "x-1.out"
    with folder_lock(tmp_path):
        output = ChildOutput(OutputFile(path, LIMIT))
        writer = output.take_writer()
        os.set_blocking(writer, False)
        sent = 0
        with suppress(BlockingIOError):
            while True:
                sent += os.write(writer, b"%07d\n" % (sent // 8) * 512)
                output.move()
        os.close(writer)
        output.close()
    assert sent > PIPE_BYTES
    assert sum(map(len, parts(path))) == sent
    assert max(map(len, parts(path))) <= LIMIT + BLOCK
    assert output.tail.endswith(parts(path)[0][-100:])


def test_output_that_cannot_be_written_does_not_stop_the_child(tmp_path: Path) -> None:
    """The disk may be full, or a person has removed the folder; the pipe is read all the same."""
    output = ChildOutput(OutputFile(tmp_path / "none" / "x-1.out", LIMIT))
    os.write(output.take_writer(), b"lost\n")
    output.move()
    (tmp_path / "none").mkdir()
    os.write(output.take_writer(), b"kept\n")
    output.move()
    os.close(output.take_writer())
    output.close()
    assert output.file.path.read_bytes() == b"kept\n"


Step = tuple[str, int]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("print"), st.integers(0, 300)),
        st.tuples(st.just("half"), st.integers(1, 150)),
        st.tuples(st.just("look"), st.integers(1, 400)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(steps=steps, over=st.sampled_from([0, 40, PIPE_BYTES]))
def test_no_interleaving_loses_repeats_or_reorders_a_byte(steps: list[Step], over: int) -> None:
    """Prints, renamings, looks and restarts in any order: the reader gets all bytes once and in order."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "x-1.out")
        clock = FakeClock()
        log = FollowedLog(path, hold=True)
        with folder_lock(path.parent):
            file = OutputFile(path, LIMIT, clock)
            sent, read, waiting, number = b"", b"", b"", 0
            for step, count in steps:
                if step == "look":
                    read += log.read(count)
                elif step == "restart" and not waiting:
                    file.close()
                    file = OutputFile(path, LIMIT, clock)
                    before = path.stat().st_size if path.exists() else 0
                    file.open()
                    sent += b"\n" * (path.stat().st_size - before)
                elif step != "restart" and not waiting:
                    data = b"".join(b"%d\n" % each for each in range(number, number + count // 4))
                    data += b"h" * count if step == "half" else b""
                    number += count
                    sent += data
                    waiting = data
                waiting = file.append(waiting, over)
                assert log.unread_bytes() + len(read) + len(waiting) == len(sent)
            read += read_all(log)
            while waiting:
                waiting = file.append(waiting, over)
                read += read_all(log)
            file.close()
        log.close()
        assert read == sent
        assert log.gaps == 0
