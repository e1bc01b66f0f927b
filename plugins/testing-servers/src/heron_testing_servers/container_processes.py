"""Containers of a test server as processes: a command, its environment, its folder, its output and its end.

A container survives its server, as on a cluster: a restarted server finds it again with `ContainerProcesses.restore`.
All containers end with the owner, the process of pytest, also when it is killed; `end_containers` ends them before. The
end of a container is the end of all processes that it has started, because each has a `container_shim` above it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from heron.clock import wait_for
from heron.driver_kit.child_processes import ProcessIdentity, spawn
from heron_testing_servers import container_shim

__all__ = ["Container", "ContainerEnd", "ContainerProcesses", "end_containers", "shell"]

_END_S = 30.0  # a killed process, on a machine that runs other tests
_LOOK_S = 0.01
_INHERITED = ("HOME", "LANG", "LC_ALL", "PATH", "TZ", "USER")


def shell(command: str) -> tuple[str, ...]:
    """Return the words that run a command of a shell."""
    return ("/bin/sh", "-c", command)


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a command has ended: its exit code, or the signal that killed it; `at_s` is the time of the day."""

    exit_code: int = 0
    signal: int = 0
    at_s: float = 0.0

    @property
    def code(self) -> int:
        """The exit code as a shell and Docker report it: 128 and the signal, for example 137."""
        return 128 + self.signal if self.signal else self.exit_code


class Container:
    """One container. Its folder has ``sandbox``, the working directory, with the files ``stdout`` and ``stderr``."""

    def __init__(self, folder: Path, shim: ProcessIdentity) -> None:
        self.name = folder.name
        self.sandbox = folder / "sandbox"
        self._folder = folder
        self._shim = shim

    @property
    def pid(self) -> int:
        """The process id of its command; 0 before it starts."""
        try:
            return int((self._folder / "pid").read_text(encoding="ascii"))
        except OSError:
            return 0

    @property
    def end(self) -> ContainerEnd | None:
        """How it has ended; None while one of its processes runs."""
        if self._shim.alive():
            return None
        try:
            return ContainerEnd(**json.loads((self._folder / "end.json").read_text(encoding="ascii")))
        except OSError:
            return ContainerEnd(signal=signal.SIGKILL)  # its shim was killed, and the command with it

    def stop(self, grace_s: float) -> None:
        """Order the end: SIGTERM, and SIGKILL after `grace_s` seconds. A later call may only shorten the time."""
        (self._folder / "grace").write_text(str(grace_s), encoding="ascii")
        self._shim.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the command with SIGKILL, as the kernel does without memory; what it has started ends too."""
        if self.end is None and (pid := self.pid):
            ProcessIdentity.of(pid).signal(signal.SIGKILL)

    def tail(self, output: str = "stdout", lines: int = 10) -> list[str]:
        """Return the last lines of ``stdout`` or ``stderr``."""
        try:
            with (self.sandbox / output).open(encoding="utf-8", errors="replace") as file:
                return list(deque((line.rstrip("\n") for line in file), lines))
        except OSError:
            return []


class ContainerProcesses:
    """The containers of one server, by their names; for use from any thread."""

    def __init__(
        self,
        folder: Path,
        owner: int,
        on_end: Callable[[Container, ContainerEnd], None],
        on_start: Callable[[Container], None] = lambda _: None,
    ) -> None:
        """Choose what is called from a thread when a container has started, and when it has ended.

        Args:
            folder: of the containers.
            owner: the process with which all containers end.
            on_end: called once for each container, after `on_start`.
            on_start: called when the command has its process; not for containers that `restore` finds.
        """
        self._folder = folder
        self._owner = owner
        self._on_end = on_end
        self._on_start = on_start
        self._containers: dict[str, Container] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        stop_group: bool = True,
        one_output: bool = False,
    ) -> Container:
        """Start a command in a new folder `name`, with no environment but `env` and what each login has, as PATH.

        Args:
            name: a file name that no container of this server has had.
            argv: the command; see `shell`.
            env: its variables.
            stop_group: whether SIGTERM goes to all processes of the command's group, as in Mesos; Docker sends it only
                to the command.
            one_output: whether stderr is joined to stdout.
        """
        sandbox, folder = self.sandbox(name), self._folder / name
        inherited = {each: os.environ[each] for each in _INHERITED if each in os.environ}
        outputs = {each: str(sandbox / each) for each in ("stdout", "stderr")}
        started, shim_end = os.pipe()
        start = {
            "started": shim_end,
            "argv": list(argv),
            "env": {**inherited, "PWD": str(sandbox), **env},
            "cwd": str(sandbox),
            "stdout": outputs["stdout"],
            "stderr": outputs["stdout" if one_output else "stderr"],
            "owner": self._owner,
            "stop_group": stop_group,
        }
        (folder / "start.json").touch(mode=0o600)
        (folder / "start.json").write_text(json.dumps(start), encoding="utf-8")
        shim = [sys.executable, "-I", "-S", container_shim.__file__, str(folder)]
        process = spawn(shim, death_signal=None, detached=True, pass_fds=[shim_end])
        os.close(shim_end)
        identity = ProcessIdentity.of(process.pid)
        (folder / "shim.json").write_text(json.dumps(asdict(identity)), encoding="ascii")
        container = Container(folder, identity)
        self._containers[name] = container
        threading.Thread(target=self._follow, args=(container, started, process.wait), daemon=True).start()
        return container

    def sandbox(self, name: str) -> Path:
        """Return the working directory of a container; before `start`, files may be put there."""
        place = self._folder / name / "sandbox"
        place.mkdir(parents=True, exist_ok=True)
        return place

    def restore(self) -> list[Container]:
        """Find the containers that an earlier process of this server has started; `on_end` comes for each again."""
        found = _found(self._folder)
        for container, identity in found:
            self._containers[container.name] = container
            threading.Thread(target=self._wait, args=(container, partial(_wait, identity)), daemon=True).start()
        return [container for container, _ in found]

    def get(self, name: str) -> Container | None:
        """Return a container, also one that has ended."""
        return self._containers.get(name)

    def running(self) -> dict[str, int]:
        """Return the process ids of the commands that run, by the names of their containers."""
        return {name: each.pid for name, each in list(self._containers.items()) if each.end is None and each.pid}

    def _follow(self, container: Container, started: int, wait: Callable[[], object]) -> None:
        os.read(started, 1)  # returns when the shim closes its end
        os.close(started)
        if container.pid:
            self._on_start(container)
        self._wait(container, wait)

    def _wait(self, container: Container, wait: Callable[[], object]) -> None:
        wait()
        self._on_end(container, container.end or ContainerEnd())


def end_containers(folder: Path) -> None:
    """Kill every container whose folder is in `folder`, and return when nothing of them is left."""
    found = [(container, identity) for container, identity in _found(folder) if identity.alive()]
    for container, _ in found:
        container.stop(0.0)
    for container, identity in found:
        if not wait_for(partial(_is_over, identity), _END_S, _LOOK_S):
            msg = f"the container {container.name} did not end within {_END_S:g} s after SIGKILL"
            raise TimeoutError(msg)


def _is_over(identity: ProcessIdentity) -> bool:
    return not identity.alive()


def _found(folder: Path) -> list[tuple[Container, ProcessIdentity]]:
    found = []
    for each in sorted(folder.glob("*/shim.json")):
        identity = ProcessIdentity(**json.loads(each.read_text(encoding="ascii")))
        found.append((Container(each.parent, identity), identity))
    return found


def _wait(identity: ProcessIdentity) -> None:
    """Wait for the end of a process that is no child."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        if identity.alive():
            select.select([descriptor], [], [])
    finally:
        os.close(descriptor)
