"""The checkpoints of one topology in a checkpoint store."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import partial

from heron.checkpoints.load_retries import LoadRetries
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest, Place, decode_manifest, encode
from heron.errors import CheckpointError, TornCheckpointError
from heron.spi.checkpoint import CheckpointStore

__all__ = ["CheckpointArchive", "places_of"]

_MANIFEST = "manifest"
_DIGITS = 10


class CheckpointArchive:
    """Saves and loads the payloads and manifests of a topology; a thin layer above the store."""

    def __init__(self, store: CheckpointStore, topology: str, retries: LoadRetries | None = None) -> None:
        """With `retries`, a load is repeated while the store is away; all other calls are made once."""
        self._store = store
        self._topology = topology
        self._retries = retries

    def task_object(self, at: CheckpointId, task_id: int) -> str:
        """The name of the object that a task saves for a checkpoint."""
        return f"{self._folder(at)}/task-{task_id}"

    def save(self, name: str, payloads: Sequence[bytes]) -> None:
        """Stores payloads one behind the other; see `places_of`.

        Raises:
            CheckpointError: as `CheckpointStore.store`.
        """
        self._store.store(name, b"".join(payloads))

    def load(self, place: Place) -> bytes:
        """The payload at a place.

        Raises:
            CheckpointError: when it cannot be loaded, or is not what was saved.
        """
        if not place.object.startswith(f"{self._topology}/"):
            msg = (
                f"checkpoint object {place.object!r:.200} is not of topology {self._topology!r}; use another checkpoint"
            )
            raise CheckpointError(msg)
        data = self._load(place.object, place.start, place.size_bytes)
        if zlib.crc32(data) != place.crc:
            msg = (
                f"checkpoint object {place.object}: {place.size_bytes} bytes at {place.start} are torn or changed, "
                "their checksum does not match; use another checkpoint"
            )
            raise TornCheckpointError(msg)
        return data

    def save_manifest(self, manifest: CheckpointManifest) -> None:
        """Stores a manifest. Afterwards the checkpoint exists.

        Raises:
            CheckpointError: as `CheckpointStore.store`.
        """
        self._store.store(self._manifest_object(manifest.id), encode(manifest))

    def manifest(self, at: CheckpointId) -> CheckpointManifest:
        """The manifest of a checkpoint.

        Raises:
            CheckpointError: when the checkpoint does not exist, or its manifest is torn, of a newer format, or of
                another checkpoint.
        """
        name = self._manifest_object(at)
        found = decode_manifest(self._load(name), name)
        if (found.topology, found.id) != (self._topology, at):
            msg = f"{name}: holds checkpoint {found.id} of topology {found.topology!r}; use another checkpoint"
            raise CheckpointError(msg)
        return found

    def checkpoints(self, run: str = "") -> tuple[CheckpointId, ...]:
        """The complete checkpoints of a run, or of all runs (""); the newest of the last run is the last.

        Runs are in the order of their first object, oldest first.

        Raises:
            CheckpointError: when the store cannot list.
        """
        found: dict[str, list[int]] = {}
        ages_s: dict[str, float] = {}
        for each in self._store.list(f"{self._topology}/{run}" if run else self._topology):
            parts = each.name.split("/")
            if len(parts) == 4 and parts[2].isdecimal():
                ages_s[parts[1]] = max(each.age_s, ages_s.get(parts[1], 0.0))
                if parts[3] == _MANIFEST:
                    found.setdefault(parts[1], []).append(int(parts[2]))
        runs = sorted(found, key=lambda each: -ages_s[each])
        return tuple(CheckpointId(each, number) for each in runs for number in sorted(found[each]))

    def dispose_others(self, run: str, kept: Iterable[CheckpointManifest], before: int) -> None:
        """Disposes the objects of a run's checkpoints with a number below `before` that no kept checkpoint needs.

        `heron.tmanager.state.manifest_writer` chooses `kept`.

        A process that dies in the middle leaves no checkpoint without its payloads.

        Raises:
            CheckpointError: when the store cannot list or dispose.
        """
        manifests = tuple(kept)
        needed = _objects(manifests) | {self._manifest_object(each.id) for each in manifests}
        names = [each.name for each in self._store.list(f"{self._topology}/{run}")]
        surplus = [each for each in names if each not in needed and _number(each) < before]
        self._store.dispose(sorted(surplus, key=_is_payload))

    def delete(self, at: CheckpointId, others: Iterable[CheckpointManifest]) -> None:
        """Removes a checkpoint: its manifest, then the payloads of its run up to it that none of the `others` needs.

        `others` are all other checkpoints of the topology, of every run. Never delete the newest checkpoint of a run
        that goes on: its next checkpoint refers to the payloads of this one.

        Raises:
            CheckpointError: when the store cannot list or dispose.
        """
        needed = _objects(others)
        self._store.dispose([self._manifest_object(at)])
        names = [each.name for each in self._store.list(f"{self._topology}/{at.run}")]
        self._store.dispose(
            each for each in names if _is_payload(each) and each not in needed and _number(each) <= at.number
        )

    def _load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        load = partial(self._store.load, name, start, size_bytes)
        return load() if self._retries is None else self._retries.until_loaded(load)

    def _manifest_object(self, at: CheckpointId) -> str:
        return f"{self._folder(at)}/{_MANIFEST}"

    def _folder(self, at: CheckpointId) -> str:
        return f"{self._topology}/{at.run}/{at.number:0{_DIGITS}d}"


def places_of(name: str, payloads: Sequence[bytes]) -> tuple[Place, ...]:
    """The place of each payload when `CheckpointArchive.save` has stored them under this name."""
    places, start = [], 0
    for each in payloads:
        places.append(Place(name, start, len(each), zlib.crc32(each)))
        start += len(each)
    return tuple(places)


def _objects(manifests: Iterable[CheckpointManifest]) -> set[str]:
    return {name for each in manifests for name in each.objects()}


def _is_payload(name: str) -> bool:
    return not name.endswith(f"/{_MANIFEST}")


def _number(name: str) -> int:
    number = name.split("/")[2]
    return int(number) if number.isdecimal() else 0
