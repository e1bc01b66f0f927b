"""The packages of a container's tasks: that of the submission, and those of new code, which it fetches on a thread."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection

from heron.driver_kit.loading import open_driver
from heron.errors import HeronError
from heron.executor.workspace import Workspace
from heron.ipc.reactor import Reactor
from heron.spi.driver import DriverRef
from heron.spi.uploader import Uploader

__all__ = ["TaskPackages"]

_log = logging.getLogger(__name__)


class TaskPackages:
    """Fetches each package once, on another thread: a store may block, and the executor must serve its children."""

    def __init__(
        self, reactor: Reactor, workspace: Workspace, uploader: DriverRef, submitted: str, present: Collection[str]
    ) -> None:
        """`submitted` is the URI of the package "", and `present` are the packages that the workspace has."""
        self._reactor = reactor
        self._workspace = workspace
        self._uploader = uploader
        self._submitted = submitted
        self._present = set(present)
        self._waiting: dict[str, list[Callable[[str], object]]] = {}
        self._outcomes: deque[tuple[str, str]] = deque()
        self._work: Callable[[Callable[[], object]], None] | None = None

    def has(self, package: str) -> bool:
        """Whether the package is unpacked."""
        return package in self._present

    def fetch(self, package: str, then: Callable[[str], object]) -> None:
        """Fetches a package; calls `then` on the thread of the reactor with "", or with the reason of a failure."""
        waiting = self._waiting.setdefault(package, [])
        waiting.append(then)
        if len(waiting) == 1:
            self._worker()(lambda: self._fetch(package))

    def keep(self, packages: Collection[str]) -> None:
        """Removes all packages that no process needs, except that of the submission."""
        for package in self._present - {"", *packages}:
            self._present.discard(package)
            self._workspace.remove_package(package)

    def _worker(self) -> Callable[[Callable[[], object]], None]:
        """Most containers never get new code, so the thread starts with the first one."""
        if self._work is None:
            self._wakeup = self._reactor.machine.wakeup()
            self._wakeup.asleep = True
            self._reactor.on_readable(self._wakeup.fd, self._deliver)
            self._work = self._reactor.machine.worker("packages")
        return self._work

    def _fetch(self, package: str) -> None:
        error = ""
        try:
            uploader = open_driver(self._uploader, Uploader)
            self._workspace.fetch_package(uploader, package or self._submitted, submitted=not package)
        except HeronError as failure:
            error = str(failure)
        except Exception as failure:  # of a driver of a third party
            _log.exception("fetching package %s", package or self._submitted)
            error = f"package {package or self._submitted}: {type(failure).__name__}: {failure}"
        self._outcomes.append((package, error))
        self._wakeup.wake()

    def _deliver(self) -> None:
        self._wakeup.drain()
        self._wakeup.asleep = True  # before the look at the outcomes, so that none is missed
        while self._outcomes:
            package, error = self._outcomes.popleft()
            if not error:
                self._present.add(package)
            for then in self._waiting.pop(package, ()):
                then(error)
