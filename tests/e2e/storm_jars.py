"""Jars of Storm in a sandbox: what their topologies have written and emitted, and Storm's own servers beside them."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["COUNT", "OWN", "SOURCES", "WAIT_S", "Libraries", "Row", "Storm", "StormServers", "received", "rows_in"]

SOURCES = Path(__file__).parent / "topologies" / "storm"
OWN = "heron.tests.StormTopologies"
COUNT = 140
WAIT_S = 300.0  # a JVM for each task starts, on two cores that others use too

RECORDER = '''\
"""Writes what each task emits: a line of JSON with component, task, stream and values."""

import json
import os
from pathlib import Path

from heron.api import ITaskHook


class Recorder(ITaskHook):
    def prepare(self, conf, context):
        name = f"{context.get_component_id()}-{context.get_task_id()}-{os.getpid()}.emits"
        self._file = (Path(os.environ["RECORDED"]) / name).open("a", buffering=1)

    def emit(self, emit_info):
        values = [each if isinstance(each, int | float | str) else repr(each) for each in emit_info.values]
        self._file.write(json.dumps([emit_info.stream_id, values]) + "\\n")
'''


class Libraries(NamedTuple):
    """The folder of Storm's jars, and the jar of the starter topologies."""

    storm: Path
    starter: Path


class Row(NamedTuple):
    """What a sink has received: its component, its task index, and source, stream and values of the tuple."""

    sink: str
    place: int
    source: str
    stream: str
    values: tuple[str, ...]


def rows_in(folder: Path, sink: str = "") -> list[Row]:
    """What the sinks have received that write to a folder, in the order of each process."""
    found = []
    for path in sorted(folder.glob(f"{sink}*.rows")):
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            place, source, stream, *values = line.split("\t")
            found.append(Row(path.name.split("-")[0], int(place), source, stream, tuple(values)))
    return found


def received(folder: Path) -> Counter[tuple[str, str, str, tuple[str, ...]]]:
    """What the sinks have received, whichever of their tasks it was."""
    return Counter((each.sink, each.source, each.stream, each.values) for each in rows_in(folder))


class StormServers:
    """Storm's own servers, each in a JVM: `StormServers.java` describes them."""

    def __init__(self, server: Path, libraries: Libraries, own: Path, folder: Path) -> None:
        self._own, self._folder = own, folder
        self._path = f"{folder}:{own}:{server}/*:{libraries.starter}"
        command = ["javac", "-d", str(folder), "-cp", self._path, str(SOURCES / "StormServers.java")]
        subprocess.run(command, check=True, capture_output=True, timeout=300)

    @contextmanager
    def running(self, *words: str) -> Iterator[Callable[[], bool]]:
        """Run one; yields a check that it runs still."""
        log = self._folder / f"{words[0]}.log"
        options = [f"-Dstorm.jar={self._own}", f"-Djava.io.tmpdir={self._folder}", "-Xmx700m", "-XX:+UseSerialGC"]
        options.append("-Dstorm.options=topology.workers=1")  # the cluster has six
        command = ["java", *options, "-cp", self._path, "heron.tests.StormServers", *words]
        with (
            log.open("wb") as out,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=self._folder) as process,
        ):

            def runs() -> bool:
                assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")[-10_000:]
                return True

            try:
                yield runs
            finally:
                process.kill()


class Storm:
    """Starts jars in a sandbox, and reads what their topologies have written and emitted."""

    def __init__(self, sandbox: Sandbox, libraries: Libraries, own: Path, cache: Path) -> None:
        self.sandbox, self.libraries, self.own = sandbox, libraries, own
        self.out, self.emits = sandbox.root / "rows", sandbox.root / "emits"
        self.out.mkdir()
        self.emits.mkdir()
        (sandbox.root / "recorder.py").write_text(RECORDER, encoding="utf-8")
        sandbox.environ |= {"HERON_STORM_LIB": str(libraries.storm), "RECORDED": str(self.emits)}
        sandbox.environ |= {"PYTHONPATH": str(sandbox.root), "XDG_CACHE_HOME": str(cache)}

    def start(self, kind: str, *more: str, options: tuple[str, ...] = ()) -> HeronRun:
        """Start a topology of these tests."""
        arguments = (OWN, kind, "exact", str(self.out), str(COUNT), *more)
        return self.sandbox.start(self.own, *options, args=arguments)

    def start_starter(self, name: str, *arguments: str, tasks: int = 1) -> HeronRun:
        """Start a topology of the starter jar; a component has at most `tasks` tasks. Its emits are recorded."""
        hook = ("--set", 'topology.auto.task.hooks=["recorder:Recorder"]')
        keys = ("-c", f"topology.max.task.parallelism={tasks}", "-c", "topology.workers=1")
        main = f"org.apache.storm.starter.{name}"
        return self.sandbox.start(self.libraries.starter, *hook, *keys, args=(main, *arguments))

    def rows(self, sink: str = "") -> list[Row]:
        """What the sinks have received, in the order of each process."""
        return rows_in(self.out, sink)

    def numbers(self) -> dict[str, int]:
        """How the spout stands: what it has emitted, and how often a tuple has failed; empty before all are acked."""
        path = self.out / "numbers.json"
        return dict(json.loads(path.read_bytes())) if path.exists() else {}

    def emitted(self, component: str) -> dict[str, list[list[object]]]:
        """The values that each task of a component has emitted, in their order."""
        found: dict[str, list[list[object]]] = {}
        for path in self.emits.glob(f"{component}-*.emits"):
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            found[path.name.split("-")[-2]] = [json.loads(line)[1] for line in lines]
        return found

    def first(self, component: str) -> list[object]:
        """The first value of each emit of a component with one task, in their order."""
        return [values[0] for task in self.emitted(component).values() for values in task]

    def children(self, run: HeronRun, component: str) -> list[psutil.Process]:
        """The JVMs of the tasks of a component."""
        found = []
        for task in run.processes("instance", f"/{component}-"):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += task.children()
        return found

    def end(self, run: HeronRun) -> None:
        """Stop a topology that never ends by itself."""
        run.process.send_signal(signal.SIGINT)
        assert run.wait(WAIT_S) == 130, run.all_output
