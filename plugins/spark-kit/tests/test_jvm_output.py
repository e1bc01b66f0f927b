"""The stdout of a JVM in a log, with a process of Python in its place."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest

from heron_spark_kit.jvm_output import logged_stdout

_PROGRAM = """\
import sys
print("WARNING: Using incubator modules")
print("x" * 40_000)
print("\\xe9\\n\\nno newline", end="")
sys.stderr.write("printed by a worker")
"""


def test_each_line_is_a_record_and_stderr_stays(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever its length and its end. The thread ends with the process."""
    caplog.set_level(logging.INFO)
    before = set(threading.enumerate())
    with logged_stdout(logging.getLogger("spark")) as stdout:
        (reader,) = set(threading.enumerate()) - before
        subprocess.run([sys.executable, "-X", "utf8", "-c", _PROGRAM], check=True, stdout=stdout)
    reader.join(10)
    assert not reader.is_alive()
    wanted = ["WARNING: Using incubator modules", "x" * 16_384, "\xe9", "no newline"]
    assert [each.message for each in caplog.records] == wanted
    assert capfd.readouterr() == ("", "printed by a worker")
