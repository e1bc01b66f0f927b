"""Where the containers of a run are: on this machine, on hosts of their own, or in a cgroup of their own.

Hosts and cgroups need root. Where they cannot be made, the error says so, and the trial is named as one that this
machine cannot make.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ground_truth.errors import TruthError
from heron.clock import monotonic_s
from heron_testing.relay import Relay
from heron_testing_servers.install import ServerNotInstalledError
from heron_testing_servers.network import Network

__all__ = ["Site", "SiteOf", "cgroup", "full_outlets", "hosts", "machine", "memory_limits", "write"]

_CONTAINERS = 3  # with container 0
_LIMITED = 2
_WINDOW_BYTES = 65_536
_HIGH_BYTES, _LOW_BYTES = 262_144, 16_384
_MOUNTS = Path("/sys/fs/cgroup")
_GONE_S, _POLL_S = 5.0, 0.1


@dataclass(frozen=True, slots=True)
class Site:
    """How the containers of a run start: what is put before their command, and engine settings.

    `relay` is what the connections between containers 1 and 2 pass. `memory` is the cgroup of container 2.
    """

    launcher: Sequence[str] = ()
    engine: Mapping[str, object] = field(default_factory=dict)
    relay: Relay | None = None
    memory: Path | None = None

    def profile(self) -> dict[str, object]:
        """Return the profile of a run at this site."""
        scheduler = {"driver": "local", "launcher": list(self.launcher)} if self.launcher else {"driver": "local"}
        return {"extends": "local", "scheduler": scheduler, "engine": dict(self.engine)}


SiteOf = Callable[[Path], AbstractContextManager[Site]]
"""Makes a site; the folder belongs to the run."""


@contextlib.contextmanager
def machine(folder: Path) -> Iterator[Site]:
    """All containers run on this machine, without limits."""
    yield Site()


@contextlib.contextmanager
def full_outlets(folder: Path) -> Iterator[Site]:
    """As `machine`; a slow task soon holds its spouts up, and works off for long what it has got until then."""
    yield Site(engine={"heron.stmgr.high.watermark.bytes": _HIGH_BYTES, "heron.stmgr.low.watermark.bytes": _LOW_BYTES})


@contextlib.contextmanager
def hosts(folder: Path) -> Iterator[Site]:
    """Container N runs on host N. The windows of links are small, as they are for a link of many streams."""
    try:
        network = Network(_CONTAINERS)
        network.start()
    except ServerNotInstalledError as error:
        msg = f"this machine has no network of hosts: {error}"
        raise TruthError(msg) from error
    try:
        places = folder / "places"
        places.mkdir()
        for container_id in range(_CONTAINERS):
            network.place(places, container_id, container_id)
        engine = {"heron.network.host": network.interface, "heron.link.window.bytes": _WINDOW_BYTES}
        with network.slow(1, 2, 0.0) as relay:
            yield Site(network.launcher(places), engine, relay)
    finally:
        network.kill()


@contextlib.contextmanager
def memory_limits(folder: Path) -> Iterator[Site]:
    """Container 2 runs in a cgroup that counts its memory."""
    with cgroup("memory") as group:
        enter = f'[ {{container}} != {_LIMITED} ] || echo $$ > {group}/cgroup.procs; exec "$@"'
        yield Site(("sh", "-c", enter, "sh"), memory=group)


@contextlib.contextmanager
def cgroup(controller: str) -> Iterator[Path]:
    """A cgroup of version 1 below that of this process; processes that are left return to the cgroup above."""
    above = _own(controller)
    folder = above / f"heron-truth-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        msg = f"this machine allows no cgroup of {controller}: {error}"
        raise TruthError(msg) from error
    try:
        yield folder
    finally:
        _remove(folder, above)


def _remove(folder: Path, above: Path) -> None:
    deadline_s = monotonic_s() + _GONE_S
    pause = threading.Event()
    while True:
        for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):
                write(above / "cgroup.procs", int(pid))
        try:
            folder.rmdir()
        except OSError:
            if monotonic_s() > deadline_s:
                raise
            pause.wait(_POLL_S)
        else:
            return


def _own(controller: str) -> Path:
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return _MOUNTS / controller / path.lstrip("/")
    msg = f"this machine has no cgroups of {controller}"
    raise TruthError(msg)


def write(path: Path, value: int) -> None:
    """Set a value of a cgroup."""
    path.write_text(str(value), encoding="ascii")
