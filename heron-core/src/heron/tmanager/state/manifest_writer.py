"""Stores manifests on a thread, because a store may block for many seconds, and removes what no checkpoint needs."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest
from heron.errors import HeronError
from heron.ipc.reactor import Reactor

__all__ = ["ManifestWriter"]

_log = logging.getLogger(__name__)


class ManifestWriter:
    """Stores one manifest after the other; `on_stored` gets the number and "", or why it could not be stored.

    It calls `on_stored` on the thread of the reactor.
    """

    def __init__(
        self, reactor: Reactor, archive: CheckpointArchive, kept: int, on_stored: Callable[[int, str], None]
    ) -> None:
        """`kept` is the number of complete checkpoints that stay in the store."""
        self._archive = archive
        self._kept = kept
        self._on_stored = on_stored
        self._stored: dict[CheckpointId, CheckpointManifest] = {}  # of those that stay; their thread alone uses it
        self._outcomes: deque[tuple[int, str]] = deque()
        self._wakeup = reactor.machine.wakeup()
        self._wakeup.asleep = True
        reactor.on_readable(self._wakeup.fd, self._deliver)
        self._work = reactor.machine.worker("manifests")

    def store(self, manifest: CheckpointManifest, *, keeps_older: bool = False) -> None:
        """Stores a manifest soon, and then removes older checkpoints unless `keeps_older`."""
        self._work(partial(self._store, manifest, keeps_older))

    def _store(self, manifest: CheckpointManifest, keeps_older: bool) -> None:
        error = ""
        try:
            self._archive.save_manifest(manifest)
        except HeronError as failure:
            error = f"its manifest cannot be stored: {failure}"
        except Exception as failure:  # of a driver of a third party
            _log.exception("storing the manifest of checkpoint %s", manifest.id)
            error = f"its manifest cannot be stored: {type(failure).__name__}: {failure}"
        self._outcomes.append((manifest.number, error))
        self._wakeup.wake()
        if not error and not keeps_older:
            self._dispose_older(manifest)

    def _dispose_older(self, newest: CheckpointManifest) -> None:
        """Chooses the checkpoints that stay, and disposes what none of them needs.

        A failure costs space only: the next checkpoint tries again.

        One more is kept than asked for: the plan names the checkpoint before this one until the leader has written it.
        """
        try:
            kept = self._archive.checkpoints(newest.run)[-self._kept - 1 :]
            older = [each for each in kept if each != newest.id]
            manifests = [self._stored.get(each) or self._archive.manifest(each) for each in older]
            self._stored = {each.id: each for each in (*manifests, newest)}
            self._archive.dispose_others(newest.run, [*manifests, newest], before=newest.number)
        except Exception as error:
            _log.warning("old checkpoints cannot be removed, the next checkpoint tries again: %s", error)

    def _deliver(self) -> None:
        self._wakeup.drain()
        self._wakeup.asleep = True  # before the look at the outcomes, so that none is missed
        while self._outcomes:
            self._on_stored(*self._outcomes.popleft())
