"""``heron run --reload``: looks at the files of the program, and gives the running topology what was saved.

A thread looks at the files five times a second. That needs no library, and a person sees no delay. The process that
loads the file is started before a file is saved, because its start takes longer than the load. The thread has its own
connections. What it has to say goes through a queue to the thread that writes to the terminal.

A running topology refuses new code while another update is under way. Then the files are given to it again, as they
are at that time, until it takes them or answers something else.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heron.clock import monotonic_s
from heron.errors import HeronError, RefusedError, TopologyFailedError, UsageError
from heron_cli.launch.code.code_update import update_code
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology
from heron_cli.topologies.environment import Environment, ProfileChoice, find_profile, open_environment
from heron_cli.topologies.running.code_request import CodeRequest
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["Reloaded", "Reloading"]

_LOOK_S = 0.2
_SETTLED_S = 0.05  # editors write a file in several steps
_AGAIN_S = 0.5  # the first pause before files that were refused are given again; each further pause is twice as long
_AGAIN_MAX_S = 10.0
_LIMIT_S = 60.0
_LEAVE_S = 5.0  # the topology has ended, so a change under way ends soon

_Marks = dict[Path, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What became of a saved file, for people; `reason` is why the former code runs on, "" if it does not."""

    text: str
    reason: str = ""


class Reloading:
    """Follows the files of one program in a thread, from `begin` to `end`; a context manager."""

    def __init__(self, choice: ProfileChoice, topology: str, target: str, loaded: LoadedTopology) -> None:
        self._choice = choice
        self._topology = topology
        self._target = target
        self._arguments = loaded.argv
        self._files = _paths(loaded.root, loaded.files)
        self._marks = _marks(self._files)
        self._refusals = 0  # in a row
        self._again_s = math.inf
        self._said: queue.SimpleQueue[Reloaded] = queue.SimpleQueue()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="reload", daemon=True)

    def said(self) -> list[Reloaded]:
        """Return what there is to say since the last call."""
        return [self._said.get() for _ in range(self._said.qsize())]

    def __enter__(self) -> Reloading:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(_LEAVE_S)

    def _follow(self) -> None:
        profile = find_profile(self._choice)
        environment = open_environment(profile)
        try:
            while (started := self._started()) is not None:
                with started as loading:
                    loading.choose(profile.choices)
                    if self._wait():
                        self._reload(environment, loading)
        finally:
            environment.close()

    def _started(self) -> LoadingTopology | None:
        """Start the process that will load the file; None at the end. An editor may be about to replace the file."""
        while not self._ends.is_set():
            try:
                return LoadingTopology(self._target, self._arguments, waits=True)
            except UsageError:
                self._ends.wait(_LOOK_S)
        return None

    def _wait(self) -> bool:
        """Wait until a file has changed and changes no more, or refused files are due; return false at the end."""
        while not self._ends.wait(_LOOK_S):
            found = _marks(self._files)
            while found != self._marks and not self._ends.wait(_SETTLED_S):
                self._marks, found = found, _marks(self._files)
                if found == self._marks:
                    self._refusals = 0
                    return True
            if monotonic_s() >= self._again_s:
                return True
        return False

    def _reload(self, environment: Environment, loading: LoadingTopology) -> None:
        request = CodeRequest(self._target, self._arguments)
        # Until a load succeeds nobody knows its files: what fails may be in one that it imports for the first time.
        beside = (each for folder in {file.parent for file in self._files} for each in folder.glob("*.py"))
        self._files = tuple(dict.fromkeys((*self._files, *beside)))
        self._marks = _marks(self._files) | self._marks
        self._again_s = math.inf
        try:
            with RemoteTopology(environment.statemgr, environment.scheduler, self._topology, _LIMIT_S) as topology:
                done = update_code(environment, self._choice, topology, request, loading.result)
        except RefusedError as error:
            self._refused(error)
        except TopologyFailedError as error:
            self._said.put(Reloaded("heron: not reloaded, the former code runs on", str(error)))
        except HeronError as error:
            self._said.put(Reloaded(f"heron: not reloaded, the former code runs on: {error}"))
        else:
            self._files = done.files
            self._marks = _marks(self._files) | {each: self._marks[each] for each in done.files if each in self._marks}
            if done.tasks:
                self._said.put(Reloaded(f"heron: reloaded {', '.join(done.changed)} in {done.took_s or 0.0:.2f} s"))

    def _refused(self, error: RefusedError) -> None:
        self._again_s = monotonic_s() + min(_AGAIN_S * 2.0 ** min(self._refusals, 32), _AGAIN_MAX_S)
        self._refusals += 1
        if self._refusals == 1:
            self._said.put(Reloaded(f"heron: not reloaded yet, the former code runs on: {error}"))


def _paths(root: Path, files: Sequence[str]) -> tuple[Path, ...]:
    return tuple(root / each for each in files)


def _marks(files: Iterable[Path]) -> _Marks:
    """The time of the last change and the size of each file; a file that is being replaced has none."""
    found: _Marks = {}
    for each in files:
        try:
            status = each.stat()
        except OSError:
            continue
        found[each] = status.st_mtime_ns, status.st_size
    return found
