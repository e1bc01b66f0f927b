"""Which files of a directory are one log, and which partition has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rotated_logs import LINGER_S, Logs, read, texts

from heron.errors import UsageError
from heron_connector_files import FilesSource, LogLine
from heron_connector_files.directory import families, listed
from heron_streamlet.connectors.transformer import StageContext
from heron_testing.fake_clock import FakeClock


def test_names_decide_which_files_are_of_a_log(tmp_path: Path) -> None:
    """Counted files and dates, plain and compressed; a file that is being compressed counts once."""
    names = ["a.log", "a.log.1", "a.log.10.gz", "a.log.2", "a.log.2.gz", "b.log-20261128.gz", "b.log-20261129",
             "c.log.1", "a.log.old", "d.txt", "worker-1.log", "a.log.gz"]  # fmt: skip
    for number, name in enumerate(names):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (number, number))
    found = families(listed(tmp_path), "*.log")
    assert {log: [each.name for each in entries] for log, entries in found.items()} == {
        "a.log": ["a.log.10.gz", "a.log.2", "a.log.1", "a.log"],
        "b.log": ["b.log-20261128.gz", "b.log-20261129"],
        "c.log": ["c.log.1"],
        "worker-1.log": ["worker-1.log"],
    }


def test_files_with_numbers_are_logs_if_the_pattern_names_them(logs: Logs) -> None:
    """A program may have a log for each worker: all go on, and each is rotated by itself."""
    reader = logs.reader(names="worker*")
    expected: dict[str, list[str]] = {name: [] for name in ("worker-1", "worker-2")}
    found = list[LogLine]()
    for _ in range(3):
        for name in expected:
            expected[name] += logs.write(2, name)
        found += read(reader, logs.clock)
        logs.clock.advance(LINGER_S + 1)
        found += read(reader, logs.clock)
    logs.path("worker-1").rename(logs.path("worker-1.1"))
    expected["worker-1"] += logs.write(2, "worker-1")
    logs.write(1, "worker")  # a log by itself; the others stay what they are
    for each in (reader, logs.reader(reader.position, names="worker*")):
        found += read(each, logs.clock)
        found = [line for line in found if line.log != "worker"]
    assert {name: [each.text for each in found if each.log == name] for name in expected} == {
        "worker-1": expected["worker-1"] + expected["worker-1"][-2:],
        "worker-2": expected["worker-2"],
    }


def test_a_pattern_that_matches_rotated_files_follows_the_log(logs: Logs) -> None:
    """Between the rename and the next file the log is known still, also when the task starts then."""
    reader = logs.reader(names="worker*")
    expected = logs.write(2, "worker")
    found = texts(read(reader, logs.clock))
    for number in range(3):
        logs.path("worker").rename(logs.path(f"worker-2026112{number}"))
        found += texts(read(reader, logs.clock))
        reader = logs.reader(reader.position, names="worker*")
        found += texts(read(reader, logs.clock))
        expected += logs.write(2, "worker")
        found += texts(read(reader, logs.clock))
    assert found == expected
    assert reader.gauges()["logs"] == 1


def test_a_link_to_the_file_of_today_counts_once(logs: Logs) -> None:
    """Programs with a file for each day often have a link to the newest one, as another log or as the same."""
    reader, found = logs.reader(), list[str]()
    expected = []
    for link, form in (("shop.log", "shop-2026112{}.log"), ("pay.log", "pay.log-2026112{}")):
        for number in range(3):
            expected += logs.write(2, form.format(number))
            logs.path(link).unlink(missing_ok=True)
            logs.path(link).symlink_to(form.format(number))
            found += texts(read(reader, logs.clock))
            logs.clock.advance(LINGER_S + 1)
            expected += logs.write(2, form.format(number))
            found += texts(read(reader, logs.clock))
            reader = logs.reader(reader.position)
    assert found == expected
    assert reader.gauges()["logs"] == 4


def test_each_log_belongs_to_one_partition(logs: Logs) -> None:
    """Tasks share the logs, also those that appear later."""
    source = FilesSource(logs.directory, partitions=4)
    for number in range(20):
        logs.write(1, f"{number}.log")
    readers = [source.open(name, None, StageContext("logs")) for name in source.partitions(3)]
    found = [sorted(each.log for each in read(reader, FakeClock(), 1)) for reader in readers]
    for each in readers:
        each.close()
    assert sorted(name for names in found for name in names) == sorted(f"{number}.log" for number in range(20))
    assert all(found)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"names": "a/b"}, "names='a/b' is not a pattern"),
        ({"partitions": 0}, "partitions=0 is not an integer from 1 to 4,096"),
        ({"line_bytes": 2**31}, "line_bytes=2147483648 is not a number of bytes"),
        ({"linger_s": -1}, "linger_s=-1 is not"),
        ({"scan_s": 0}, "scan_s=0 is not"),
        ({"missing": "ignore"}, "missing='ignore' is not 'error' or 'skip'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], reason: str) -> None:
    """Before a pipeline starts."""
    with pytest.raises(UsageError, match=reason):
        FilesSource("/var/log", **arguments)  # type: ignore[arg-type]  # they are wrong


def test_a_partition_without_lines_has_no_backlog(logs: Logs) -> None:
    """A task adds up its partitions, and one that cannot tell would hide what the others say."""
    reader = logs.reader()
    assert reader.backlog() is None  # the directory is not listed yet
    assert read(reader, logs.clock) == []
    assert reader.backlog() == 0.0
    logs.write(10)
    logs.clock.advance(1.0)
    assert len(reader.read(4)) == 4
    assert reader.backlog() == 6.0


def test_more_tasks_than_partitions_are_refused(tmp_path: Path) -> None:
    """Some would read nothing for ever."""
    with pytest.raises(UsageError, match="5 tasks, but 4 partitions"):
        FilesSource(tmp_path, partitions=4).partitions(5)
