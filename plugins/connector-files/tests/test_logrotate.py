"""The real logrotate rotates a log that grows while it is read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from logging.handlers import WatchedFileHandler
from pathlib import Path

import pytest

from heron_connector_files import FilesSource, LogLine
from heron_connector_files.reader import DirectoryReader
from heron_streamlet.connectors.transformer import StageContext
from heron_testing.waiting import Eventually
from heron_testing_servers.logrotate import Logrotate

ROTATIONS = 10


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., DirectoryReader]]:
    """Opens readers of the directory, which end with the test."""
    readers: list[DirectoryReader] = []
    source = FilesSource(tmp_path / "logs", partitions=1, linger_s=1.0, scan_s=0.01)

    def open_reader(position: object = None) -> DirectoryReader:
        readers.append(source.open("0", position, StageContext("logs")))
        return readers[-1]

    yield open_reader
    for each in readers:
        each.close()


Opened = Callable[..., DirectoryReader]


@pytest.mark.parametrize(
    "more",
    [(), ("compress",), ("compress", "delaycompress"), ("compress", "dateext", "dateformat -%Y%m%d-NUMBER")],
    ids=lambda more: "-".join(more)[:24],
)
def test_a_program_logs_while_its_file_is_renamed(
    tmp_path: Path, opened: Opened, logrotate: Logrotate, eventually: Eventually, more: tuple[str, ...]
) -> None:
    """The handler of the standard library finds the new file by itself; the task dies at each rotation."""
    log = tmp_path / "logs" / "app.log"
    log.parent.mkdir()
    handler = WatchedFileHandler(log)
    ended, written = threading.Event(), [0]

    def write() -> None:
        while not ended.wait(0.0005):
            handler.emit(logging.makeLogRecord({"msg": f"line {written[0]}"}))
            written[0] += 1

    writing = threading.Thread(target=write)
    writing.start()
    found: list[LogLine] = []
    reader = opened()

    def seen(count: int) -> bool:
        found.extend(reader.read(50))
        return len(found) >= count

    try:
        for number in range(ROTATIONS):
            eventually(partial(seen, len(found) + 20), timeout_s=60)
            logrotate.rotate(log, "create", *(each.replace("NUMBER", str(number)) for each in more))
            reader = opened(reader.position)
    finally:
        ended.set()
        writing.join()
        handler.close()
    eventually(lambda: seen(written[0]), timeout_s=60)
    assert [each.text for each in found] == [f"line {number}" for number in range(written[0])]
    assert len(list(log.parent.glob("app.log[.-]*"))) == ROTATIONS


@pytest.mark.parametrize("more", [(), ("compress",), ("compress", "delaycompress")], ids="-".join)
def test_a_file_is_copied_and_truncated(
    tmp_path: Path, opened: Opened, logrotate: Logrotate, eventually: Eventually, more: tuple[str, ...]
) -> None:
    """The writer waits meanwhile, because logrotate itself loses what is written between the copy and its end."""
    log = tmp_path / "logs" / "app.log"
    log.parent.mkdir()
    found: list[LogLine] = []
    reader, written = opened(), 0

    def seen(count: int) -> bool:
        found.extend(reader.read(50))
        return len(found) >= count

    with log.open("a", encoding="ascii") as file:
        for _ in range(ROTATIONS):
            for _ in range(2):
                file.write("".join(f"line {written + number}\n" for number in range(300)))
                file.flush()
                written += 300
                eventually(partial(seen, written - 250), timeout_s=60)
                reader = opened(reader.position)
            logrotate.rotate(log, "copytruncate", *more)
    eventually(partial(seen, written), timeout_s=60)
    assert [each.text for each in found] == [f"line {number}" for number in range(written)]
    assert len(list(log.parent.glob("app.log.*"))) == ROTATIONS
