"""The author's file as commands see it. A child process loads it, so the file may block or change its interpreter."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from heron.api.definition import TopologyDefinition
from heron.driver_kit.parent_process import DEATH_SIGNAL, PARENT_PID
from heron.errors import TopologyError, UsageError
from heron.spi.engine import PipelineChoices
from heron.state_nodes.plans import decode_topology
from heron_cli.launch.loading.compat_plugin import PYTHON_SUFFIX
from heron_cli.launch.loading.load_report import LoadReport, StateReport
from heron_cli.launch.loading.stored_program import StoredProgram

__all__ = ["LoadedTopology", "LoadingTopology", "WrittenFolder", "split_target"]

_LINGER_S = 1.0  # threads that the author's file started may keep the child alive after its report
_LOOK_S = 0.1  # the period of the check for a cancellation
_CHUNK_BYTES = 1 << 16
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class LoadedTopology:
    """The topology of a file, and the files and import paths of its program, relative to the folder `root`.

    `compat` has the compat plugins that serve packages to the file. `written` is the folder of a program that a compat
    plugin has written, else None. `package_uri` is the stored package that the files come from, "" for files that a
    submission packs. `states` has the components with state.
    """

    definition: TopologyDefinition
    module: str
    script: bool
    choice: str | None
    argv: tuple[str, ...]
    root: Path
    files: tuple[str, ...]
    import_paths: tuple[str, ...] = (".",)
    compat: tuple[str, ...] = ()
    written: WrittenFolder | None = None
    package_uri: str = ""
    states: dict[str, StateReport] = field(default_factory=dict)


class WrittenFolder:
    """A new folder, which exists as long as this object.

    Its name has the process. A process that is killed cannot remove its folder, so the next one does.
    """

    def __init__(self) -> None:
        prefix = f"heron-program-{os.stat('/proc/self/ns/pid').st_ino}-"  # containers may share temporary files
        for each in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            if not Path("/proc", each.name.removeprefix(prefix).partition("-")[0]).exists():
                shutil.rmtree(each, ignore_errors=True)  # one of another user stays
        self.path = tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class LoadingTopology:
    """A load in progress, as a context manager. The command can prepare other things meanwhile.

    It loads the file of `target`, FILE or FILE:NAME, or the program of a stored package with its own arguments. With
    `verbose`, an error of the author's file has its traceback. A load that `waits` reads the file when its result is
    asked for; the process is ready by then.
    """

    def __init__(
        self, target: str | StoredProgram, argv: Sequence[str], *, verbose: bool = False, waits: bool = False
    ) -> None:
        self._stored = target if isinstance(target, StoredProgram) else None
        if isinstance(target, StoredProgram):
            self._path, self._choice, self._argv = target.file, target.manifest.choice, target.manifest.argv
        else:
            self._path, self._choice = split_target(target)
            self._argv = tuple(argv)
        self._verbose = verbose
        self._answered = False
        self._written = None if self._path.suffix == PYTHON_SUFFIX else WrittenFolder()
        folder = self._written.path if self._written else ""
        self._reader, writer = os.pipe()
        choices, self._choices = os.pipe()
        start, self._start = os.pipe() if waits else (-1, -1)
        name = self._choice or ""
        environment = {**os.environ, PARENT_PID: str(os.getpid()), DEATH_SIGNAL: signal.SIGKILL.name}
        if self._stored:
            environment["PYTHONPATH"] = os.pathsep.join(map(str, self._stored.more_folders))
        command = [sys.executable, "-P", "-m", "heron_cli.launch.loading.loader"]
        inherited = [each for each in (writer, choices, start) if each >= 0]
        try:
            self._child = subprocess.Popen(
                [*command, *map(str, (writer, choices, start)), folder, str(self._path), name, *self._argv],
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=inherited,
                process_group=0,  # Ctrl-C goes to the command, which then ends its children
            )
        finally:
            for each in inherited:
                os.close(each)

    def choose(self, choices: PipelineChoices) -> None:
        """Say what pipelines get. Without this call, `result` chooses Heron and no store."""
        if self._choices < 0:
            return
        descriptor, self._choices = self._choices, -1
        with suppress(BrokenPipeError):  # a file without a pipeline does not ask, and its process may have ended
            os.write(descriptor, msgspec.json.encode(choices))
        os.close(descriptor)

    def result(self, cancelled: Callable[[], bool] = lambda: False) -> LoadedTopology:
        """Wait for the report without a time limit, or until `cancelled` returns true.

        Raises:
            UsageError: when the file does not load, has no topology, or ends early.
            KeyboardInterrupt: when the load was cancelled.
        """
        self.choose(PipelineChoices())
        if self._start >= 0:
            with suppress(BrokenPipeError):
                os.write(self._start, b"\n")
        data = self._read(cancelled)
        self._answered = True
        if not data:
            raise UsageError(self._died())
        report = msgspec.json.decode(data, type=LoadReport)
        if report.error:
            raise TopologyError(self._described(report))
        definition = decode_topology(report.definition.encode(), str(self._path))
        if self._stored:
            return _of_package(definition, self._stored)
        return LoadedTopology(
            definition,
            report.module,
            report.script,
            self._choice,
            self._argv,
            Path(report.root),
            report.files,
            report.import_paths,
            report.compat,
            self._written,
            states=report.states,
        )

    def close(self) -> None:
        """End the child if it still runs. Further calls have no effect."""
        self.choose(PipelineChoices())
        for each in (self._reader, self._start):
            if each >= 0:
                os.close(each)
        self._reader = self._start = -1
        try:
            self._child.wait(_LINGER_S if self._answered else 0.0)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, cancelled: Callable[[], bool]) -> bytes:
        chunks: list[bytes] = []
        while not cancelled():
            if not select.select([self._reader], [], [], _LOOK_S)[0]:
                continue
            chunk = os.read(self._reader, _CHUNK_BYTES)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
        raise KeyboardInterrupt

    def _described(self, report: LoadReport) -> str:
        if self._verbose and report.traceback:
            return f"{report.error}\n\n{report.traceback.rstrip()}"
        return report.error

    def _died(self) -> str:
        try:
            code = self._child.wait(_LINGER_S)
        except subprocess.TimeoutExpired:
            code = 0
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"{self._path}: its process ended by {how} while it was loaded; it must return to define its topology"


def _of_package(definition: TopologyDefinition, stored: StoredProgram) -> LoadedTopology:
    """Return the topology with the files of its package, whatever the load has found.

    Raises:
        UsageError: when the file now defines another topology than when it was packed.
    """
    manifest = stored.manifest
    if definition.name != manifest.topology:
        msg = (
            f"package {stored.uri}: its file defines topology {definition.name!r} here, and defined "
            f"{manifest.topology!r} where it was packed; take the name from no variable of the environment"
        )
        raise UsageError(msg)
    return LoadedTopology(
        definition,
        manifest.module,
        manifest.script,
        manifest.choice,
        manifest.argv,
        stored.folder,
        tuple(manifest.files),
        manifest.import_paths,
        manifest.compat,
        package_uri=stored.uri,
    )


def split_target(target: str) -> tuple[Path, str | None]:
    """Return the absolute path and the name of ``FILE[:NAME]``.

    Raises:
        UsageError: when the file does not exist or cannot be read.
    """
    file, colon, name = target.rpartition(":")
    if not colon or not _NAME.fullmatch(name) or Path(target).exists():
        file, name = target, ""
    path = Path(file)
    if path.is_dir():
        msg = f"{file}: is a folder; give the file that defines the topology"
        raise UsageError(msg)
    if not path.is_file():
        msg = f"{file}: no such file; give the file that defines the topology"
        raise UsageError(msg)
    if not os.access(path, os.R_OK):
        msg = f"{file}: permission denied; make it readable"
        raise UsageError(msg)
    return path.resolve(), name or None
