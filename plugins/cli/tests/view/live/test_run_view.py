"""The output of `heron run` for people."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from heron.ipc.documents.status import (
    ComponentStatus,
    Culprit,
    TaskStatus,
    TopologyStatus,
    decode_status,
    encode_status,
)
from heron_cli.view.live.run_view import PlainView
from heron_cli.view.status_line import status_line
from heron_cli.view.status_table import status_table
from heron_cli.view.text import format_bytes, format_count

STATUS = TopologyStatus(
    "words",
    "words-1",
    "running",
    0.0,
    components=(
        ComponentStatus("lines", "spout", 1, emitted=12345, rate_per_s=1000.4),
        ComponentStatus("count", "bolt", 2, emitted=5, executed=12000, queue_bytes=3 << 20, latency_s=2.5e-6),
    ),
    backpressure=(Culprit(3, "count", 1, since_s=90.0, cause="the task is slow"),),
)


def test_amounts_are_readable() -> None:
    """Digits are grouped, and bytes have binary units."""
    assert format_count(1234567.4) == "1,234,567"
    assert [format_bytes(each) for each in (0, 1023, 1536, 8 << 20, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "8.0 MiB",
        "3.0 GiB",
    ]


def test_the_table_has_counts_and_the_cause_of_back_pressure() -> None:
    """The task that causes it is named."""
    screen = io.StringIO()
    Console(file=screen, width=120).print(status_table(STATUS, wall_s=100.0))
    text = screen.getvalue()
    for expected in ("12,345", "12,000", "1,000", "3.0 MiB", "2.5 µs"):
        assert expected in text
    assert "back pressure by count/3 for 10.0 s: the task is slow (container 1)" in text


def test_a_plain_line_has_the_same_values() -> None:
    """It is for logs and pipes."""
    assert status_line(STATUS, wall_s=101.5) == (
        "words running: lines 12,345 emitted (1,000/s); count 12,000 executed, 5 emitted (0/s, 3.0 MiB queued); "
        "back pressure by count/3 for 11.5 s: the task is slow"
    )


def test_tasks_that_are_starting_are_counted() -> None:
    """Some take half a minute, for example those that start a JVM."""
    tasks = tuple(TaskStatus(each, "count", 1, "running" if each == 2 else "starting", 1) for each in range(1, 4))
    starting = replace(STATUS, tasks=tasks)
    assert status_line(starting, wall_s=100.0).startswith("words running, 2 of 3 tasks are starting: lines 12,345 e")
    screen = io.StringIO()
    Console(file=screen, width=120).print(status_table(starting, wall_s=100.0))
    assert screen.getvalue().startswith("words (running, 2 of 3 tasks are starting)")


def test_failed_tuples_are_counted() -> None:
    """The error is printed once, so only the count shows how often it happened."""
    failing = replace(STATUS, components=(ComponentStatus("count", "bolt", 2, executed=12000, failed=6667),))
    screen = io.StringIO()
    Console(file=screen, width=120).print(status_table(failing, wall_s=100.0))
    assert "6,667" in screen.getvalue()
    assert "count 12,000 executed, 0 emitted, 6,667 failed (0/s)" in status_line(failing, wall_s=100.0)


def test_the_authors_lines_go_to_stdout_and_messages_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """The author can pipe stdout."""
    view = PlainView()
    view.lines(["a", "b"])
    view.note("c")
    view.close()
    assert capsys.readouterr() == ("a\nb\n", "c\n")


def test_a_status_can_be_encoded_and_decoded() -> None:
    """A status is JSON on the wire and in the state manager."""
    assert decode_status(encode_status(STATUS)) == STATUS
