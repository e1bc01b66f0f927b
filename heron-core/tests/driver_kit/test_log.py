"""The log of a role process: format and size; it never stops the process."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from heron.driver_kit.log import JsonLines, RotatingLog


@pytest.fixture
def logger(tmp_path: Path) -> Iterator[logging.Logger]:
    handler = RotatingLog(tmp_path / "role.log", max_bytes=2000, older_files=2)
    handler.setFormatter(JsonLines(topology="words", container=1, process="stmgr"))
    found = logging.getLogger("heron.test")
    found.addHandler(handler)
    found.setLevel(logging.INFO)
    yield found
    found.removeHandler(handler)
    handler.close()


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_line_has_the_message_and_its_context(logger: logging.Logger, tmp_path: Path) -> None:
    """Commands and people filter lines by these keys."""
    logger.info("took %d tuples", 3)
    (line,) = lines(tmp_path / "role.log")
    assert datetime.fromisoformat(str(line.pop("at"))).tzinfo is not None
    assert line == {
        "level": "info",
        "logger": "heron.test",
        "message": "took 3 tuples",
        "topology": "words",
        "container": 1,
        "process": "stmgr",
    }


def test_traceback_stays_in_its_line(logger: logging.Logger, tmp_path: Path) -> None:
    """Each record is one line, also with a traceback."""
    try:
        raise ValueError("wörse\n")  # noqa: EM101 - the message is the test's data
    except ValueError:
        logger.exception("failed")
    (line,) = lines(tmp_path / "role.log")
    assert "ValueError: wörse" in str(line["error"])


def test_size_is_bounded_and_the_newest_lines_are_kept(logger: logging.Logger, tmp_path: Path) -> None:
    """A long-running process must not fill the disk."""
    for number in range(200):
        logger.info("message %d", number)
    files = sorted(tmp_path.iterdir())
    assert [each.name for each in files] == ["role.log", "role.log.1", "role.log.2"]
    kept = [line["message"] for each in reversed(files) for line in lines(each)]
    assert kept == [f"message {number}" for number in range(200 - len(kept), 200)]
    assert all(each.stat().st_size < 2300 for each in files)


def test_full_file_that_cannot_be_renamed_grows(
    logger: logging.Logger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log must never stop a topology."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    (tmp_path / "role.log.1" / "in the way").mkdir(parents=True)
    for number in range(50):
        logger.info("message %d", number)
    assert lines(tmp_path / "role.log")[-1]["message"] == "message 49"


def test_threads_do_not_mix_lines(logger: logging.Logger, tmp_path: Path) -> None:
    """The gateway and the task thread log into one file, also during its rotation."""

    def write() -> None:
        for _ in range(50):
            logger.info("x" * 50)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(line["message"] == "x" * 50 for each in tmp_path.iterdir() for line in lines(each))


def test_no_line_has_a_secret(logger: logging.Logger, tmp_path: Path) -> None:
    """Libraries sometimes log credentials, also in exceptions."""
    logger.handlers[-1].setFormatter(JsonLines(("hunter2", "a'b\\c", "abc"), process="stmgr"))
    try:
        raise ValueError("hunter2 is refused")  # noqa: EM101 - what a library does
    except ValueError:
        logger.exception("signing in with %s and %r, %s", "hunter2", "a'b\\c", "abcdef")
    text = (tmp_path / "role.log").read_text()
    assert "hunter2" not in text
    (line,) = lines(tmp_path / "role.log")
    assert line["message"] == 'signing in with (secret) and "(secret)", abcdef'
    assert "ValueError: (secret) is refused" in str(line["error"])
