"""The output of a JVM while it starts and later, with a process of Python in its place."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

import pytest

from heron_spark_kit.jvm_output import expect_end, logged_start
from heron_testing.waiting import wait_until

_START = """\
import sys
sys.stderr.write("WARNING: Using incubator modules\\n\\n")
sys.stdout.write("\\xe9 is no end")
"""
_LATER = """\
print("printed by a worker")
print("no newline", end="")
"""


_STOPPED = """\
import sys
print("printed by a worker", file=sys.stderr)
sys.stderr.write("Traceback (most recent call last):\\n")
sys.stderr.write("  File daemon.py\\n")
"""


def run(program: str, output: int) -> None:
    """Run a program that inherits the output."""
    subprocess.run([sys.executable, "-X", "utf8", "-c", program], check=True, stdout=output, stderr=output)


def test_what_is_written_during_the_start_is_logged_and_later_output_is_not(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """A line of the start that has no end does not take the next one with it. The thread ends with the processes."""
    before = set(threading.enumerate())
    with logged_start(logging.getLogger("spark")) as output:
        (reader,) = set(threading.enumerate()) - before
        run(_START, output)
        inherited = os.dup(output)
    run(_LATER, inherited)
    os.close(inherited)
    reader.join(10)
    assert not reader.is_alive()
    lines = ["WARNING: Using incubator modules", "\xe9 is no end"]
    assert [each.message for each in caplog.records] == [f"the JVM of Spark: {line}" for line in lines]
    assert capfd.readouterr() == ("", "printed by a worker\nno newline")


def test_a_start_that_fails_is_logged_to_its_end(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The error of the start is raised, and the log has its reason."""
    before = set(threading.enumerate())
    readers: set[threading.Thread] = set()

    def start() -> None:
        with logged_start(logging.getLogger("spark")) as output:
            readers.update(set(threading.enumerate()) - before)
            run("import sys; sys.exit('Error: no such option')", output)

    with pytest.raises(subprocess.CalledProcessError):
        start()
    for each in readers:
        each.join(10)
    assert [each.message for each in caplog.records] == ["the JVM of Spark: Error: no such option"]
    assert capfd.readouterr() == ("", "")


def test_a_worker_that_loses_its_jvm_at_the_end_prints_no_traceback(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """A traceback that an author's function printed before is shown; so is a line before that of the worker."""
    before = set(threading.enumerate())
    with logged_start(logging.getLogger("spark")) as output:
        (reader,) = set(threading.enumerate()) - before
        inherited = os.dup(output)
    run(_STOPPED, inherited)
    shown: list[str] = []

    def whole() -> bool:
        shown.append(capfd.readouterr().err)
        return "daemon.py\n" in "".join(shown)

    wait_until(whole, 10, "all that was printed before the end")
    expect_end()
    run(_STOPPED, inherited)
    os.close(inherited)
    reader.join(10)
    assert "".join(shown) == "printed by a worker\nTraceback (most recent call last):\n  File daemon.py\n"
    assert capfd.readouterr().err == "printed by a worker\n"
    lines = ["Traceback (most recent call last):", "  File daemon.py"]
    assert [each.message for each in caplog.records] == [f"the JVM of Spark: {line}" for line in lines]
