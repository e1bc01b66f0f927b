"""Saves the state of a task for one checkpoint after the other, without stopping the task for long.

The task thread encodes the changed key groups in slices, between calls of user code. Another thread stores them, and
the task thread takes the outcome.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from heron.checkpoints.archive import CheckpointArchive, places_of
from heron.checkpoints.manifest import CheckpointId, Place, TaskSnapshot
from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.instance.state.state_snapshot import StateSnapshot
from heron.ipc.machine import REAL_MACHINE, Machine

__all__ = ["CheckpointSaver", "SavedOutcome"]

_LEAST_USED = 0.25  # the share of an object that must be in use; so a store holds at most four times the state
_OPERATOR, _LETTERS = -1, -2  # in the place of a key group
_SLICE_S = 0.005  # what one call of `advance` may take, plus one key group


@dataclass(frozen=True, slots=True)
class SavedOutcome:
    """A checkpoint of the task is stored, with this snapshot, or `error` says why it is not."""

    number: int
    snapshot: TaskSnapshot | None = None
    error: str = ""


class _Job:
    """One checkpoint: what is encoded so far. `groups` are the key groups of `payloads`, in order, or the above."""

    __slots__ = ("began_s", "groups", "keyed", "name", "number", "payloads", "places", "removed", "snapshot")

    def __init__(
        self, number: int, name: str, snapshot: TaskSnapshot, payloads: dict[int, bytes], keyed: StateSnapshot
    ) -> None:
        self.number = number
        self.name = name
        self.snapshot = snapshot
        self.keyed = keyed
        self.payloads = list(payloads.values())
        self.groups = list(payloads)
        self.removed: list[int] = []
        self.places: tuple[Place, ...] = ()
        self.began_s = monotonic_s()


class CheckpointSaver:
    """Saves what changed since the last checkpoint; `places` says where each key group is stored."""

    def __init__(
        self,
        archive: CheckpointArchive,
        run: str,
        task_id: int,
        on_outcome: Callable[[], None],
        machine: Machine = REAL_MACHINE,
    ) -> None:
        """Calls `on_outcome` on another thread when `outcome` has something."""
        self._archive = archive
        self._run = run
        self._task_id = task_id
        self._on_outcome = on_outcome
        self._places: dict[int, Place] = {}
        self._sizes_bytes: dict[str, int] = {}
        self._job: _Job | None = None
        self._outcomes: deque[tuple[_Job, str]] = deque()
        self._encoding = False
        self._machine = machine
        self._work: Callable[[Callable[[], object]], None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being saved."""
        return self._job is not None

    def restart(self, places: dict[int, Place]) -> None:
        """The task is restored: its key groups are at these places. A checkpoint that is being saved does not count."""
        self._places = dict(places)
        self._sizes_bytes = _used_bytes(self._places)
        self._job = None
        self._encoding = False

    def sparse_groups(self) -> tuple[int, ...]:
        """The key groups in objects that are mostly out of date: they are saved again, so that the objects can go."""
        used_bytes = _used_bytes(self._places)
        sparse = {name for name, size in used_bytes.items() if size < _LEAST_USED * self._sizes_bytes.get(name, 0)}
        return tuple(group for group, place in self._places.items() if place.object in sparse)

    def begin(
        self,
        number: int,
        snapshot: TaskSnapshot,
        operator: bytes | None,
        keyed: StateSnapshot,
        letters: bytes | None = None,
    ) -> None:
        """Begins to save; only when it is not busy."""
        whole = {_OPERATOR: operator, _LETTERS: letters}
        payloads = {each: payload for each, payload in whole.items() if payload is not None}
        name = self._archive.task_object(CheckpointId(self._run, number), self._task_id)
        self._job = _Job(number, name, snapshot, payloads, keyed)
        self._encoding = True

    def advance(self) -> bool:
        """Task thread: encodes one slice; returns whether another slice is to be encoded.

        Raises:
            SerializationError: when a value cannot be encoded; this checkpoint is over then.
        """
        job = self._job
        if job is None or not self._encoding:
            return False
        try:
            for group, payload in job.keyed.next(_SLICE_S):
                if payload is None:
                    job.removed.append(group)
                else:
                    job.groups.append(group)
                    job.payloads.append(payload)
        except HeronError:
            job.keyed.abandon()
            self._job, self._encoding = None, False
            raise
        if not job.keyed.done:
            return True
        self._encoding = False
        if self._work is None:
            self._work = self._machine.worker("checkpoints")
        self._work(partial(self._store, job))
        return False

    def outcome(self) -> SavedOutcome | None:
        """Task thread: the outcome of the checkpoint, once."""
        while self._outcomes:
            job, error = self._outcomes.popleft()
            if job is not self._job:
                continue  # from before a restore
            self._job = None
            if error:
                job.keyed.abandon()
                return SavedOutcome(job.number, error=error)
            return SavedOutcome(job.number, self._snapshot_of(job))
        return None

    def _snapshot_of(self, job: _Job) -> TaskSnapshot:
        places = dict(zip(job.groups, job.places, strict=True))
        operator, letters = places.pop(_OPERATOR, None), places.pop(_LETTERS, None)
        self._places |= places
        for group in job.removed:
            self._places.pop(group, None)
        written_bytes = sum(map(len, job.payloads))
        used = _used_bytes(self._places)
        self._sizes_bytes = {name: self._sizes_bytes.get(name, written_bytes) for name in used}
        return msgspec.structs.replace(
            job.snapshot,
            operator=operator,
            letters=letters,
            groups=dict(self._places),
            written_bytes=written_bytes,
            save_s=monotonic_s() - job.began_s,
        )

    def _store(self, job: _Job) -> None:
        error = ""
        try:
            job.places = places_of(job.name, job.payloads)
            if job.payloads:
                self._archive.save(job.name, job.payloads)
        except HeronError as failure:
            error = str(failure)
        except Exception as failure:  # of a driver of a third party
            error = f"{type(failure).__name__}: {failure}"
        self._outcomes.append((job, error))
        self._on_outcome()


def _used_bytes(places: dict[int, Place]) -> dict[str, int]:
    used: dict[str, int] = {}
    for place in places.values():
        used[place.object] = used.get(place.object, 0) + place.size_bytes
    return used
