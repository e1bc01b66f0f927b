"""Logs that are rotated in every way while they are read: each line once, in order, from every position."""

from __future__ import annotations

import gzip
import os
import random
import resource
import shutil
from pathlib import Path

import pytest
from rotated_logs import LINGER_S, Logs, compress, read, texts

from heron.errors import ConnectorError
from heron_connector_files import LogLine
from heron_connector_files.directory import families, listed
from heron_connector_files.followed_file import FollowedFile
from heron_connector_files.reader import DirectoryPosition
from heron_streamlet.connectors.sources import PlacedReader

HOWS = ("create", "copytruncate", "create compress", "copytruncate compress", "create delaycompress",
        "copytruncate delaycompress")  # fmt: skip


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("unread", [0, 3])
def test_a_growing_file_is_read_across_ten_rotations(logs: Logs, how: str, unread: int) -> None:
    """Also if the reader was behind when the file was rotated."""
    reader = logs.reader()
    expected, found = [], list[LogLine]()
    for _ in range(10):
        expected += logs.write(20)
        found += read(reader, logs.clock)
        expected += logs.write(unread)
        logs.rotate(how)
    expected += logs.write(5)
    found += read(reader, logs.clock)
    assert texts(found) == expected
    assert all(each.is_complete for each in found)
    assert reader.gauges() == {"lag-bytes": 0.0, "logs": 1.0, "lost-files": 0.0, "truncated-files": 0.0}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "rotations", [pytest.param(0, marks=pytest.mark.matrix), 1, pytest.param(2, marks=pytest.mark.matrix), 4]
)
def test_reading_goes_on_at_each_position_after_rotations(logs: Logs, how: str, rotations: int) -> None:
    """A task may die at any line, and its successor starts when the file has another name, or is compressed."""
    expected = logs.write(30)
    logs.rotate(how)
    expected += logs.write(30)
    first, places = logs.reader(), list[object]()
    assert isinstance(first, PlacedReader)
    logs.clock.advance(1.0)
    while lines := first.read(7):
        places += [first.position_of(index) for index in range(len(lines))]
    places.append(first.position)
    for _ in range(rotations):
        logs.rotate(how)
        expected += logs.write(30)
    for index, place in enumerate(places):
        assert texts(read(logs.reader(place), logs.clock)) == expected[index:]


@pytest.mark.parametrize("how", HOWS)
def test_rotations_while_nothing_was_read_lose_nothing(logs: Logs, how: str) -> None:
    """Under back pressure the reader has seen the file, but read none of it, when it is rotated several times."""
    logs.path("app.log").touch()
    reader = logs.reader()
    assert read(reader, logs.clock) == []
    expected = []
    for _ in range(3):
        expected += logs.write(10)
        logs.rotate(how)
    expected += logs.write(10)
    assert texts(read(reader, logs.clock)) == expected


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_or_doubled_in_any_order_of_events(logs: Logs, seed: int) -> None:
    """Writes, rotations, reads, pauses, checkpoints and deaths: what was read before a checkpoint counts."""
    chance = random.Random(seed)
    how, reader = chance.choice(HOWS), logs.reader()
    expected, found = list[str](), list[str]()
    saved: tuple[object, int] = (None, 0)
    for event in chance.choices(("write", "rotate", "read", "wait", "save", "die"), (3, 1, 3, 1, 1, 1), k=60):
        if event == "write":
            expected += logs.write(chance.randint(1, 40))
        elif event == "rotate" and logs.path("app.log").exists():
            logs.rotate(how, keep=40)
        elif event == "read":
            logs.clock.advance(chance.choice((0.0, 0.2)))
            found += texts(reader.read(chance.randint(1, 50)))
        elif event == "wait":
            logs.clock.advance(chance.choice((1.0, LINGER_S)))
        elif event == "save":
            saved = reader.position, len(found)
        elif event == "die":
            place, count = saved
            reader, found = logs.reader(place), found[:count]
    assert found + texts(read(reader, logs.clock)) == expected


@pytest.mark.parametrize("how", HOWS)
def test_empty_files_and_files_that_begin_alike_are_told_apart(logs: Logs, how: str) -> None:
    """A rotation may find nothing to rotate, and a program may log the same first line after each start."""
    reader = logs.reader()
    expected, found = [], list[str]()
    for number in range(8):
        if number % 3:
            if how == "create":
                with logs.path("app.log").open("a", encoding="ascii") as file:
                    file.write("started\n")
                expected.append("started")
            if number % 2:
                expected += logs.write(number)
        else:
            logs.path("app.log").touch()
        found += texts(read(reader, logs.clock))
        logs.clock.advance(LINGER_S + 1)
        found += texts(read(reader, logs.clock))
        reader = logs.reader(reader.position)
        if number % 4 < 3:
            logs.rotate(how)
    found += texts(read(reader, logs.clock))
    assert found == expected


def test_a_copy_does_not_count_before_the_file_is_truncated(logs: Logs) -> None:
    """Its lines would be there twice."""
    expected = logs.write(10)
    shutil.copyfile(logs.path("app.log"), logs.path("app.log.1"))
    reader = logs.reader()
    assert texts(read(reader, logs.clock)) == expected
    os.truncate(logs.path("app.log"), 0)
    expected = logs.write(10)
    assert texts(read(reader, logs.clock)) == expected


def test_a_writer_that_keeps_the_renamed_file_is_waited_for(logs: Logs) -> None:
    """Writers open the new file some time after the rotation; what comes late is read, and then the file is closed."""
    reader = logs.reader()
    with logs.path("app.log").open("ab", buffering=0) as writer:
        writer.write(b"one\n")
        assert texts(read(reader, logs.clock)) == ["one"]
        logs.rotate("create")
        writer.write(b"two\nhal")
        assert texts(read(reader, logs.clock)) == ["two"]
        logs.path("app.log").write_bytes(b"four\n")
        assert texts(read(reader, logs.clock)) == ["four"]
        place = reader.position
        writer.write(b"f\n")
        assert texts(read(reader, logs.clock)) == ["half"]
    assert texts(read(logs.reader(place), logs.clock)) == ["half"]
    logs.clock.advance(LINGER_S)
    assert read(reader, logs.clock) == []
    assert read(reader, logs.clock) == []  # closes it
    marks = reader.position.marks["app.log"]
    assert [mark.name for mark in marks] == ["app.log"]


def test_a_line_without_an_end_waits_until_its_file_is_over(logs: Logs) -> None:
    """Half a line is no record; of a rotated file nothing more comes."""
    reader = logs.reader()
    expected = logs.write(2, end="")
    assert texts(read(reader, logs.clock)) == expected[:1]
    logs.clock.advance(10 * LINGER_S)
    assert read(reader, logs.clock) == []
    logs.rotate("create")
    logs.write(1)
    assert texts(read(reader, logs.clock)) == ["line 2"]
    logs.clock.advance(LINGER_S)
    (last,) = read(reader, logs.clock)
    assert (last.text, last.is_complete) == (expected[1], False)
    assert read(reader, logs.clock) == []


def test_long_lines_are_divided(logs: Logs) -> None:
    """A line holds no more memory than the limit; its pieces say what they are, and none is lost or read twice."""
    logs.path("app.log").write_bytes(b"a" * 1000 + b"\n" + b"b" * 2500 + b"\r\nc\n" + b"d" * 1001)
    reader = logs.reader()
    lines, places = list[LogLine](), list[object]()
    logs.clock.advance(1.0)
    while found := reader.read(4):
        places += [reader.position_of(index) for index in range(len(found))]
        lines += found
    expected = [(b"a" * 1000, True), (b"b" * 1000, False), (b"b" * 1000, False), (b"b" * 500, False), (b"c", True),
                (b"d" * 1000, False)]  # fmt: skip
    assert [(each.data, each.is_complete) for each in lines] == expected
    for index, place in enumerate(places):
        again = read(logs.reader(place), logs.clock)
        assert [(each.data, each.is_complete) for each in again] == expected[index:]


def test_a_file_that_is_gone_is_an_error_or_counted(logs: Logs) -> None:
    """What was not read of it cannot be known; the author decides."""
    logs.write(5)
    first = logs.reader()
    first.read(3)
    place = first.position
    logs.path("app.log").unlink()
    expected = logs.write(5)
    strict = logs.reader(place)
    with pytest.raises(ConnectorError, match=r"byte 21 \(inode \d+, last as app\.log\) is gone: put it back.*missing="):
        read(strict, logs.clock)
    assert strict.position.marks == place.marks
    patient = logs.reader(place, skips=True)
    assert texts(read(patient, logs.clock)) == expected
    assert patient.gauges()["lost-files"] == 1


def test_other_logs_go_on_beside_one_that_fails(logs: Logs) -> None:
    """One wrong file must not hold up a directory."""
    logs.write(5)
    first = logs.reader()
    first.read(3)
    place = first.position
    logs.path("app.log").unlink()
    expected = logs.write(20, "other.log")
    reader, found = logs.reader(place), list[str]()
    problems = 0
    for _ in range(30):
        logs.clock.advance(1.0)
        try:
            found += texts(reader.read(3))
        except ConnectorError:
            problems += 1
    assert found == expected
    assert problems


def test_a_deleted_file_does_not_bring_rotated_ones_back(logs: Logs) -> None:
    """Somebody removes the file that is written: what was rotated before is old."""
    logs.write(5)
    logs.rotate("create")
    logs.write(5)
    reader = logs.reader()
    assert len(read(reader, logs.clock)) == 10
    place = reader.position
    logs.path("app.log").unlink()
    expected = logs.write(5)
    assert texts(read(reader, logs.clock)) == expected
    assert texts(read(logs.reader(place, skips=True), logs.clock)) == expected


def test_a_file_that_is_truncated_without_a_copy_is_read_from_its_begin(logs: Logs) -> None:
    """The old lines are gone, and counted; rotated files that were read do not come back."""
    logs.write(5)
    logs.rotate("create")
    logs.write(50)
    reader = logs.reader()
    assert len(read(reader, logs.clock)) == 55
    os.truncate(logs.path("app.log"), 0)
    assert read(reader, logs.clock) == []
    place = reader.position
    expected = logs.write(5)
    assert texts(read(reader, logs.clock)) == expected
    assert texts(read(logs.reader(place), logs.clock)) == expected
    assert reader.gauges()["truncated-files"] == 1


@pytest.mark.parametrize("read_before", [3, 100])
def test_rotated_files_that_nobody_read_follow_a_lost_one(logs: Logs, read_before: int) -> None:
    """`rotate 1` replaced the copy of the file under the reader; the next copy was never read, and must be."""
    logs.write(100)
    os.utime(logs.path("app.log"), ns=(1, 1))  # the copies are newer
    reader = logs.reader(skips=True)
    strict = logs.reader()
    for each in (reader, strict):
        logs.clock.advance(1.0)
        assert len(each.read(read_before)) == read_before
    expected = []
    for _ in range(2):
        logs.path("app.log.1").unlink(missing_ok=True)
        logs.rotate("copytruncate")
        logs.path("app.log.2").unlink(missing_ok=True)
        expected += logs.write(10)
    if read_before < 100:
        for each in (strict, logs.reader(strict.position)):
            with pytest.raises(ConnectorError, match=r"last as app\.log\) is gone: put it back"):
                read(each, logs.clock)
    assert texts(reader.read(1)) == expected[:1]
    place = reader.position
    assert texts(read(logs.reader(place, skips=True), logs.clock)) == expected[1:]
    assert texts(read(reader, logs.clock)) == expected[1:]
    gauges = reader.gauges()
    assert (gauges["lost-files"], gauges["truncated-files"]) == ((1, 0) if read_before < 100 else (0, 1))


@pytest.mark.parametrize("wait_s", [0.0, LINGER_S + 1])
def test_a_late_line_does_not_bring_a_dated_file_back(logs: Logs, wait_s: float) -> None:
    """A program has an old file open still, or somebody touches it: its date decides, and what was read of it."""
    reader = logs.reader()
    expected = logs.write(2)
    os.utime(logs.path("app.log"), (1000, 1000))
    found = texts(read(reader, logs.clock))
    logs.path("app.log").rename(logs.path("app.log-20261127"))
    expected += logs.write(1)
    os.utime(logs.path("app.log"), (2000, 2000))
    for _ in range(3):
        found += texts(read(reader, logs.clock))
        logs.clock.advance(wait_s)
    logs.path("app.log").rename(logs.path("app.log-20261128"))
    late = logs.write(1, "app.log-20261127")
    expected += [*(() if wait_s else late), *logs.write(1)]
    for _ in range(3):
        found += texts(read(reader, logs.clock))
        logs.clock.advance(wait_s)
    assert found == expected


@pytest.mark.parametrize("seed", range(20))
def test_late_lines_of_dated_files_are_read_once(logs: Logs, seed: int) -> None:
    """Programs go on with a renamed file for less than `linger_s`; each file has its lines in order."""
    chance = random.Random(seed)
    form = chance.choice(("app.log-202611{:02}", "app.log.2026-11-{:02}", "app.log-{}"))
    reader, rotations = logs.reader(), 0
    expected, found = list[str](), list[str]()
    saved: tuple[object, int] = (None, 0)
    rotated: list[Path] = []  # less than the time to linger ago
    for event in chance.choices(("write", "rotate", "late", "touch", "read", "wait", "save", "die"), k=80):
        if event == "write":
            expected += logs.write(chance.randint(1, 40))
        elif event == "rotate" and logs.path("app.log").exists():
            rotations += 1
            rotated.append(logs.path(form.format(rotations if "{}" not in form else 1764374400 + rotations)))
            logs.path("app.log").rename(rotated[-1])
        elif event == "late" and rotated:
            expected += logs.write(chance.randint(1, 5), chance.choice(rotated).name)
        elif event == "touch" and rotations:
            os.utime(chance.choice([*logs.directory.glob("app.log?*")]))
        elif event == "read":
            logs.clock.advance(0.11)
            found += texts(reader.read(chance.randint(1, 50)))
        elif event == "wait":
            found += texts(read(reader, logs.clock))
            logs.clock.advance(LINGER_S)
            rotated.clear()
        elif event == "save":
            saved = reader.position, len(found)
        elif event == "die":
            place, count = saved
            reader, found = logs.reader(place), found[:count]
    found += texts(read(reader, logs.clock))
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("packed", [True, pytest.param(False, marks=pytest.mark.matrix)])
def test_many_rotated_files_are_read_with_few_descriptors(logs: Logs, packed: bool) -> None:
    """A task that starts behind a year of rotations neither fails at the limit of open files nor leaves lines out."""
    expected = []
    for number in range(200, 0, -1):
        expected += logs.write(2, f"app.log.{number}")
        if packed:
            compress(logs.path(f"app.log.{number}"))
    expected += logs.write(2)
    reader, found = logs.reader(), list[str]()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(each) for each in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + (16 if packed else 80), hard))
    try:
        for _ in range(20):
            found += texts(read(reader, logs.clock))
            lag = reader.gauges()["lag-bytes"]
            assert packed or lag == sum(len(each) + 1 for each in expected[len(found) :])
            logs.clock.advance(LINGER_S)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == expected


def test_the_limit_of_open_files_has_a_remedy_of_its_own(logs: Logs) -> None:
    """No permission helps; and the next scan goes on when there are descriptors."""
    expected = logs.write(2)
    reader = logs.reader()
    (entry,) = families(listed(logs.directory), "*.log")["app.log"]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with logs.path("app.log").open() as lowest:
        used = lowest.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
    try:
        with pytest.raises(ConnectorError, match=r"cannot be read.*raise the limit of open files"):
            read(reader, logs.clock)
        with pytest.raises(ConnectorError, match=r"cannot be opened.*raise the limit of open files"):
            FollowedFile(logs.directory, entry)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert texts(read(reader, logs.clock)) == expected


def test_a_log_that_is_gone_is_forgotten(logs: Logs) -> None:
    """Programs with a log for each day leave no open files behind."""
    logs.write(5, "2026-11-28.log")
    reader = logs.reader()
    assert len(read(reader, logs.clock)) == 5
    logs.path("2026-11-28.log").unlink()
    read(reader, logs.clock)
    logs.clock.advance(LINGER_S)
    read(reader, logs.clock)
    read(reader, logs.clock)
    assert reader.position == DirectoryPosition({})
    assert reader.gauges()["logs"] == 0


def test_a_damaged_compressed_file_is_an_error(logs: Logs) -> None:
    """Passing over it would lose lines without a word."""
    logs.path("app.log.2.gz").write_bytes(gzip.compress(b"one\n" * 100)[:-9])
    logs.write(1)
    with pytest.raises(ConnectorError, match=r"app\.log\.2\.gz is not a whole file of gzip"):
        read(logs.reader(), logs.clock)


def test_a_missing_directory_is_an_error_until_it_is_there(logs: Logs, tmp_path: Path) -> None:
    """The program that logs may start later."""
    logs.directory = tmp_path / "later"
    reader = logs.reader()
    logs.clock.advance(1.0)
    with pytest.raises(ConnectorError, match="create it, or permit"):
        reader.read(1)
    logs.directory.mkdir()
    assert read(reader, logs.clock) == []
    expected = logs.write(2)
    assert texts(read(reader, logs.clock)) == expected
