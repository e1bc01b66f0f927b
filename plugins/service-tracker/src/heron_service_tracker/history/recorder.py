"""Records what is observed: watches add samples, one thread writes them.

A disk that is full or slow stops only the history. Buckets that cannot be written are dropped, because memory must not
grow with the time; recording goes on when the disk takes writes again.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
from pathlib import Path

from heron.clock import Clock
from heron.driver_kit.private_files import make_private_dir
from heron.errors import StoreError
from heron_service_tracker.history.buckets import OpenBuckets
from heron_service_tracker.history.history_file import HistoryFile, StoredEvent
from heron_service_tracker.history.prometheus_history import PrometheusHistory
from heron_service_tracker.history.samples import Increments
from heron_service_tracker.observed.observed import ObservedTopology

__all__ = ["Recorder"]

_FLUSH_S = 2.0
_UNREAD_FLUSH_S = 10.0  # each flush touches a page of the file for each series, however few points it adds
_READ_S = 30.0  # after a reader, others are likely
_WAIT_S = 1.0
_PRUNE_S = 60.0
_JOIN_S = 10.0
_FILE = "history.db"
_MOST_PLACES = 10_000  # topologies whose events are known to be recorded

_log = logging.getLogger(__name__)


class Recorder:
    """The history in a folder. `take` is for any thread and never waits for the disk."""

    def __init__(self, folder: Path, most_bytes: int, clock: Clock, *, gap_s: float) -> None:
        self.file = HistoryFile(folder / _FILE, most_bytes)
        self.error = ""
        """Why nothing is recorded now; "" when it is."""
        self.prometheus: dict[str, PrometheusHistory] = {}
        """The Prometheus of each cluster whose profile names one; set before the recorder starts."""
        self._folder = folder
        self._clock = clock
        self._gap_s = gap_s
        self._lock = threading.Lock()
        self._increments = Increments(gap_s)
        self._open = OpenBuckets()
        self._events: list[StoredEvent] = []
        self._seen: dict[tuple[str, str], tuple[str, int]] = {}
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._flushed = threading.Event()
        """Set at the end of the next flush, and then another one."""
        self._flushed_at_s = self._read_at_s = float("-inf")
        self._pruned_at_s = float("-inf")
        self._held: int | None = None
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def start(self) -> None:
        """Start the thread that writes."""
        self._thread.start()

    def take(self, topology: ObservedTopology) -> None:
        """Take an observation that is new."""
        place = topology.cluster, topology.name
        with self._lock:
            self._open.add(self._increments.samples(topology), self._clock.wall_s())
            run, last = self._seen.pop(place, ("", 0))  # the newest come last
            if run != topology.entry.id:
                last = 0  # its events are counted from 1
            self._seen[place] = topology.entry.id, topology.events_seen
            if len(self._seen) > _MOST_PLACES:
                del self._seen[next(iter(self._seen))]
            if topology.events_seen > last:
                fresh = [each for each in topology.events if each.number > last]
                self._events += [StoredEvent(place, each) for each in fresh]

    def for_reader(self) -> HistoryFile:
        """Return the file, in which what was taken some seconds ago is written; it may take a second.

        While nobody reads, the file is written more seldom.
        """
        self._read_at_s = self._clock.monotonic_s()
        if self._read_at_s - self._flushed_at_s > _FLUSH_S and self._thread.is_alive():
            flushed = self._flushed
            self._wake.set()
            flushed.wait(_WAIT_S)
        return self.file

    def flush(self, *, everything: bool = False) -> None:
        """Write the buckets that have ended, or all; called by the thread that writes."""
        now_s = self._clock.wall_s()
        with self._lock:
            ended = self._open.take(None if everything else now_s)
            events, self._events = self._events, []
            is_prune_due = self._clock.monotonic_s() - self._pruned_at_s >= _PRUNE_S
            if is_prune_due:
                self._increments.forget_before(self._clock.monotonic_s() - 2 * self._gap_s)
        try:
            self._hold()
            if ended or events:
                self.file.write(ended, events)
            if is_prune_due:
                self._pruned_at_s = self._clock.monotonic_s()
                self.file.prune(now_s)
        except StoreError as error:
            if not self.error:
                _log.warning("%s; values of this time will be missing", error)
            self.error = str(error)
            self.file.close()
        else:
            self.error = ""

    def stop(self) -> None:
        """Write what is left, and end."""
        self._stop.set()
        self._wake.set()
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while True:
            is_read = self._clock.monotonic_s() - self._read_at_s < _READ_S
            self._wake.wait(_FLUSH_S if is_read else _UNREAD_FLUSH_S)
            self._wake.clear()
            if self._stop.is_set():
                break
            flushed, self._flushed = self._flushed, threading.Event()
            self.flush()
            self._flushed_at_s = self._clock.monotonic_s()
            flushed.set()
        self.flush(everything=True)
        self.file.close()
        if self._held is not None:
            os.close(self._held)

    def _hold(self) -> None:
        """Take the lock of the folder: two trackers that add to one file would count everything twice."""
        if self._held is not None:
            return
        try:
            make_private_dir(self._folder)
            descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            msg = f"the history {self._folder}: {error}"
            raise StoreError(msg) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.close(descriptor)
            msg = f"the history {self._folder}: another tracker records there; give this one another `--history`"
            raise StoreError(msg) from error
        self._held = descriptor
