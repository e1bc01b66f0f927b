"""The checkpoints of a topology in the checkpoint store of a profile: listed, chosen, taken and deleted."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest
from heron.clock import monotonic_s
from heron.errors import CheckpointError, ConfigError, TopologyFailedError, UnreachableError, UsageError
from heron.ipc.documents.status import CheckpointStatus
from heron.spi.checkpoint import CheckpointStore
from heron.spi.statemgr import StateManager
from heron_cli.catalog.third_party import open_guarded
from heron_cli.profiles import Profile
from heron_cli.topologies.run_nodes import check_name, read_run
from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = [
    "LATEST",
    "ListedCheckpoint",
    "delete_checkpoints",
    "find_manifest",
    "list_checkpoints",
    "needed_checkpoints",
    "open_archive",
    "wait_for_checkpoint",
]

LATEST = "latest"
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class ListedCheckpoint:
    """A checkpoint in the store.

    `manifest` is None when it cannot be read; then `damage` says why. It is also None when there was no time to read it
    yet; then `unread` says why.
    """

    id: CheckpointId
    manifest: CheckpointManifest | None
    damage: str = ""
    newest: bool = False
    unread: str = ""


def open_archive(profile: Profile, topology: str) -> CheckpointArchive:
    """Open the checkpoints of a topology.

    Raises:
        UsageError: when `topology` is not a valid name.
        ConfigError: when the profile has no checkpoint store, or the store does not accept its options.
        PluginError: when the driver does not load.
    """
    check_name(topology)
    if profile.checkpoint is None:
        msg = (
            f"profile {profile.name!r} has no checkpoint store; add `checkpoint: {{driver: NAME}}` to {profile.source}"
        )
        raise ConfigError(msg)
    return CheckpointArchive(open_guarded(profile.checkpoint, CheckpointStore), topology)


def list_checkpoints(
    archive: CheckpointArchive, most: int | None = None, within_s: float = math.inf
) -> tuple[ListedCheckpoint, ...]:
    """Return the checkpoints of all runs, newest first, at most `most`. The newest one that can be read has `newest`.

    After `within_s` no further one is read, so that a store that does not answer costs the time of one manifest.

    Raises:
        CheckpointError: when the store cannot list.
    """
    found: list[ListedCheckpoint] = []
    newest, until_s = True, monotonic_s() + within_s
    for each in archive.checkpoints()[::-1][:most]:
        if monotonic_s() >= until_s:
            why = f"the store took longer than {within_s:g} s for the newer ones"
            found.append(ListedCheckpoint(each, None, unread=why))
            continue
        try:
            found.append(ListedCheckpoint(each, archive.manifest(each), newest=newest))
            newest = False
        except CheckpointError as error:
            found.append(ListedCheckpoint(each, None, str(error)))
    return tuple(found)


def find_manifest(archive: CheckpointArchive, topology: str, text: str) -> CheckpointManifest:
    """Return the manifest of the checkpoint RUN/NUMBER, or of the newest one for ``latest``.

    A damaged newest checkpoint is an error: an older one would repeat work that was committed.

    Raises:
        CheckpointError: when the checkpoint does not exist, or it cannot be read.
    """
    known = archive.checkpoints()
    if text == LATEST and known:
        return archive.manifest(known[-1])
    if text != LATEST and (wanted := CheckpointId.parse(text)) in known:
        return archive.manifest(wanted)
    there = ", ".join(map(str, reversed(known))) or "none"
    msg = f"topology {topology!r} has no checkpoint {text!r:.80}; complete checkpoints: {there}"
    raise CheckpointError(msg)


def needed_checkpoints(statemgr: StateManager, topology: RemoteTopology) -> frozenset[str]:
    """Return the ids of the checkpoints that a running topology may restore; none if it does not run.

    Raises:
        UnreachableError: when the topology runs and does not answer.
    """
    if read_run(statemgr, topology.name) is None:
        return frozenset()
    try:
        status = topology.status()
    except UsageError:
        if topology.over():
            return frozenset()
        raise
    if (checkpoints := status.checkpoints) is None:
        return frozenset()
    newest = str(CheckpointId(status.topology_id, checkpoints.complete)) if checkpoints.complete else ""
    return frozenset(filter(None, (newest, checkpoints.source)))


def delete_checkpoints(archive: CheckpointArchive, chosen: Sequence[CheckpointId], needed: Collection[str]) -> None:
    """Delete checkpoints, but no payload that another checkpoint needs. `needed` are those of the running topology.

    Raises:
        UsageError: when a chosen checkpoint is needed, or does not exist; nothing was deleted.
        CheckpointError: when a checkpoint that stays cannot be read, so that its payloads are unknown; nothing was
            deleted. Also when the store fails; then the others may be deleted already.
    """
    known = archive.checkpoints()
    for each in chosen:
        if each not in known:
            there = ", ".join(map(str, reversed(known))) or "none"
            msg = f"no checkpoint {str(each)!r:.80}; complete checkpoints: {there}"
            raise UsageError(msg)
        if str(each) in needed:
            msg = f"checkpoint {each}: the running topology restores it after a failure; kill the topology first"
            raise UsageError(msg)
    others = []
    for each in known:
        if each not in chosen:
            try:
                others.append(archive.manifest(each))
            except CheckpointError as error:
                msg = f"{error}; checkpoint {each} may need what is deleted, delete it in the same command"
                raise CheckpointError(msg) from error
    for each in known:
        if each in chosen:
            archive.delete(each, others)


def wait_for_checkpoint(topology: RemoteTopology) -> CheckpointId:
    """Ask a topology for a checkpoint, and return its id when it is complete.

    Raises:
        UsageError: when the topology takes no checkpoints, or does not run.
        TopologyFailedError: when the checkpoint fails.
        UnreachableError: when it is not complete in time; it continues.
    """
    deadline_s = monotonic_s() + topology.timeout_s
    before = topology.status(control=True).checkpoints or CheckpointStatus()
    failed = before.failed
    topology.take_checkpoint()
    pause = threading.Event()
    while True:
        now = topology.status().checkpoints or CheckpointStatus()
        if now.complete > before.number:
            return CheckpointId(topology.run.topology_id, now.complete)
        if now.failed > failed and now.number > before.number:
            msg = f"topology {topology.name!r}: the checkpoint failed: {now.last_error}; the topology goes on"
            raise TopologyFailedError(msg)
        failed = now.failed  # also after another leader began to count
        if monotonic_s() >= deadline_s:
            waits = f"it waits for {now.waits_for}" if now.waits_for else "it has not begun"
            msg = (
                f"topology {topology.name!r}: no checkpoint is complete after {topology.timeout_s:g} s: {waits}; it "
                f"continues, see `heron status {topology.name}`"
            )
            raise UnreachableError(msg)
        pause.wait(_POLL_S)
