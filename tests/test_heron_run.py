"""`heron run` with real processes: its ends, its output, and its cleanup."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from heron_testing.pytest_plugin import Eventually

TOPOLOGY = """
from heron.api import Bolt, Grouping, Spout, Topology

class Lines(Spout):
    outputs = ["line"]
    def initialize(self, config, context):
        self.left = config["lines"]
    def next_tuple(self):
        if self.left == 0:
            self.end()
        else:
            self.left -= 1
            self.emit([f"line {self.left}"])

class Count(Bolt):
    outputs = ["count"]
    def initialize(self, config, context):
        self.count = 0
        open(config["mark"], "w").close()
        if config["broken"]:
            raise ValueError("no database here")
    def process(self, tup):
        self.count += 1
    def finish(self):
        print("counted", self.count)

class Words(Topology):
    config = {"lines": LINES, "broken": BROKEN, "mark": "MARK"}
    lines = Lines.spec(par=1)
    count = Count.spec(par=1, inputs={lines: Grouping.SHUFFLE})
"""

ENDLESS = -1
LIMIT_S = 30.0
GONE_S = 5.0  # the limit for any end

Heron = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that is short enough for sockets."""
    return tmp_path_factory.mktemp("r")


@pytest.fixture
def environ(place: Path) -> Mapping[str, str]:
    """A separate home and folder for temporary files."""
    (place / "home").mkdir()
    (place / "t").mkdir()
    return {**os.environ, "HOME": str(place / "home"), "TMPDIR": str(place / "t")}


@pytest.fixture
def heron(place: Path, environ: Mapping[str, str]) -> Iterator[Heron]:
    """Start ``heron run`` on a topology with `lines` lines; processes that the test leaves are killed."""
    started: list[subprocess.Popen[str]] = []

    def start(lines: int, *options: str, broken: bool = False) -> subprocess.Popen[str]:
        file = place / "words.py"
        values = {"LINES": str(lines), "BROKEN": str(broken), "MARK": str(place / "mark")}
        text = TOPOLOGY
        for name, value in values.items():
            text = text.replace(name, value)
        file.write_text(text, encoding="utf-8")
        command = [str(Path(sys.executable).with_name("heron")), "run", str(file), *options]
        started.append(
            subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def left_of(place: Path) -> list[str]:
    """Return processes and temporary files of runs below this folder, and their state and packages."""
    left = [str(each) for each in (place / "t").iterdir()]
    for folder in ("jobs", "packages", "state"):
        found = (place / "home" / ".heron" / folder).rglob("[!.]*")
        left += [str(each) for each in found if each.is_file() or each.is_socket()]
    return left + processes_of(place)


def processes_of(place: Path) -> list[str]:
    """Return the command lines that name this folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # the process has ended meanwhile
        if str(place) in command:
            found.append(command)
    return found


def running(place: Path) -> bool:
    """Return whether the bolt has been initialised."""
    return (place / "mark").exists()


def test_a_finished_topology_reports_exact_counts_and_leaves_nothing(heron: Heron, place: Path) -> None:
    """The complete path: two processes of the author, all processes of the engine, and nothing left afterwards."""
    command = heron(1000, "--report", str(place / "report.json"))
    out, error = command.communicate(timeout=LIMIT_S)
    assert command.returncode == 0, error
    assert out == "counted 1000\n"
    assert "Words finished after" in error
    report = json.loads((place / "report.json").read_text(encoding="utf-8"))
    assert report["state"] == "finished"
    assert report["components"]["lines"] == {"parallelism": 1, "emitted": 1000, "executed": 0, "acked": 0, "failed": 0}
    assert report["components"]["count"]["executed"] == 1000
    assert left_of(place) == []


def test_a_component_that_cannot_start_fails_the_run_once(heron: Heron, place: Path) -> None:
    """One line has the author's file and line, and the exception."""
    command = heron(ENDLESS, "--report", str(place / "report.json"), broken=True)
    _, error = command.communicate(timeout=LIMIT_S)
    assert command.returncode == 1
    (line,) = [each for each in error.splitlines() if "no database here" in each]
    assert "component 'count'" in line
    assert f"{place}/words.py, line " in line
    assert json.loads((place / "report.json").read_text(encoding="utf-8"))["state"] == "failed"
    assert left_of(place) == []


def test_a_timeout_stops_it_with_exit_code_1(heron: Heron, place: Path) -> None:
    """The report then says killed."""
    command = heron(ENDLESS, "--timeout", "3", "--report", str(place / "report.json"))
    _, error = command.communicate(timeout=LIMIT_S)
    assert command.returncode == 1
    assert "its --timeout is up" in error
    assert json.loads((place / "report.json").read_text(encoding="utf-8"))["state"] == "killed"
    assert left_of(place) == []


def test_repeated_ctrl_c_stops_the_run_once(heron: Heron, place: Path, eventually: Eventually) -> None:
    """Further signals change nothing."""
    command = heron(ENDLESS, "--report", str(place / "report.json"))
    eventually(lambda: running(place), LIMIT_S, "the bolt runs")
    for _ in range(3):
        command.send_signal(signal.SIGINT)
    _, error = command.communicate(timeout=LIMIT_S)
    assert command.returncode == 130
    assert "Traceback" not in error
    assert json.loads((place / "report.json").read_text(encoding="utf-8"))["state"] == "killed"
    assert left_of(place) == []


def test_kill_9_leaves_no_process_and_the_name_is_free_again(heron: Heron, place: Path, eventually: Eventually) -> None:
    """Only the children themselves can clean up; the next run removes the remaining state."""
    first = heron(ENDLESS)
    eventually(lambda: running(place), LIMIT_S, "the bolt runs")
    second = heron(10)
    _, error = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 2
    assert "topology 'Words' is already running" in error
    first.kill()
    first.wait()
    eventually(lambda: not processes_of(place) and not any((place / "t").iterdir()), GONE_S, "all processes are gone")
    third = heron(10)
    out, error = third.communicate(timeout=LIMIT_S)
    assert third.returncode == 0, error
    assert "removed what was left of topology 'Words'" in error
    assert out == "counted 10\n"
    assert left_of(place) == []


def test_a_terminal_gets_a_live_table(place: Path, environ: Mapping[str, str], heron: Heron) -> None:
    """The author's lines are above it."""
    heron(1000, "--help").communicate(timeout=LIMIT_S)  # writes the file
    screen, side = pty.openpty()
    command = subprocess.Popen(
        [str(Path(sys.executable).with_name("heron")), "run", str(place / "words.py")],
        env={**environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
        stdin=side,
        stdout=side,
        stderr=side,
    )
    os.close(side)
    shown = b"".join(read_all(screen))
    os.close(screen)
    assert command.wait(LIMIT_S) == 0
    text = shown.decode()
    assert "counted 1000" in text
    assert "per second" in text
    assert "Words (finished)" in text


def test_a_simulation_counts_the_same_in_one_process(heron: Heron, place: Path) -> None:
    """The same classes give the same report, so that breakpoints are useful there."""
    command = heron(1000, "--simulate", "--report", str(place / "report.json"))
    out, error = command.communicate(timeout=LIMIT_S)
    assert command.returncode == 0, error
    assert out == "counted 1000\n"
    report = json.loads((place / "report.json").read_text(encoding="utf-8"))
    assert (report["state"], report["components"]["count"]["executed"]) == ("finished", 1000)
    assert left_of(place) == []


def test_ctrl_c_ends_a_simulation_anywhere(heron: Heron, place: Path, eventually: Eventually) -> None:
    """The author's code runs in the process of the command, and must not block the end."""
    command = heron(ENDLESS, "--simulate", "--report", str(place / "report.json"))
    eventually(lambda: running(place), LIMIT_S, "the bolt runs")
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=LIMIT_S)
    assert command.returncode == 130


def read_all(screen: int) -> Iterator[bytes]:
    """Read the output of a terminal until no process has it open."""
    while select.select([screen], [], [], LIMIT_S)[0]:
        try:
            data = os.read(screen, 1 << 16)
        except OSError:  # Linux reports EIO when the last writer has closed it
            return
        if not data:
            return
        yield data


def test_a_socket_path_fits_in_the_folder_of_this_test(place: Path) -> None:
    """If this fails, the other tests fail because the folder for temporary files is too long, not because of Heron."""
    assert len(str(place / "t" / "heron-12345678" / "c9999" / "i99999-9999999999-9999")) <= 107
