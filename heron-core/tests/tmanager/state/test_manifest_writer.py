"""The writer of manifests: which older checkpoints stay in the store."""

from __future__ import annotations

import pytest

from heron.checkpoints.archive import CheckpointArchive
from heron.checkpoints.manifest import CheckpointManifest, TaskSnapshot
from heron.ipc.reactor import Reactor
from heron.tmanager.state.manifest_writer import ManifestWriter
from heron_testing.memory_checkpoints import MemoryCheckpointStore

LAST = 6


@pytest.mark.parametrize("keeps_older", [True, False])
def test_checkpoints_stay_while_an_update_prepares_tasks(*, keeps_older: bool) -> None:
    """A task that starts for an update may still load a checkpoint that is older than those that are kept."""
    archive = CheckpointArchive(MemoryCheckpointStore(), "words")
    reactor = Reactor()
    stored: list[int] = []

    def on_stored(number: int, error: str) -> None:
        assert error == ""
        stored.append(number)
        if number == LAST:
            reactor.stop()

    writer = ManifestWriter(reactor, archive, 1, on_stored)
    for number in range(1, LAST + 1):
        task = TaskSnapshot(1, "count", ended=True)
        manifest = CheckpointManifest("words", "words-1", number, 1e9, 0.1, 4, (task,))
        writer.store(manifest, keeps_older=keeps_older)
    reactor.run()
    assert stored == [*range(1, LAST + 1)]
    # The writer tells that a manifest is stored before it cleans up, so the last clean-up may be outstanding.
    found = [each.number for each in archive.checkpoints("words-1")]
    assert found == stored if keeps_older else found[0] >= LAST - 2


class CountingStore(MemoryCheckpointStore):
    """Counts what is loaded."""

    loads = 0

    def load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        """As the store does."""
        self.loads += 1
        return super().load(name, start, size_bytes)


def test_manifests_that_it_has_stored_are_not_loaded() -> None:
    """A load may be a request to another continent."""
    store, reactor = CountingStore(), Reactor()

    def on_stored(number: int, _error: str) -> None:
        if number == 2 * LAST:
            reactor.stop()

    CheckpointArchive(store, "words").save_manifest(CheckpointManifest("words", "words-1", 1, 1e9, 0.1, 4, ()))
    writer = ManifestWriter(reactor, CheckpointArchive(store, "words"), 2, on_stored)
    for number in range(2, 2 * LAST + 1):
        writer.store(CheckpointManifest("words", "words-1", number, 1e9, 0.1, 4, ()))
    reactor.run()
    assert store.loads == 1, "of a former leader"


def test_the_checkpoint_before_the_kept_ones_stays() -> None:
    """The plan names it until the leader has written that the newest one is complete."""
    archive = CheckpointArchive(MemoryCheckpointStore(), "words")
    reactor = Reactor()

    def on_stored(number: int, _error: str) -> None:
        if number == LAST:
            reactor.stop()

    writer = ManifestWriter(reactor, archive, 2, on_stored)
    for number in range(1, LAST + 1):
        manifest = CheckpointManifest("words", "words-1", number, 1e9, 0.1, 4, (TaskSnapshot(1, "count"),))
        writer.store(manifest, keeps_older=number == LAST)  # so the last clean-up is over when it is stored
    reactor.run()
    assert [each.number for each in archive.checkpoints("words-1")] == [LAST - 3, LAST - 2, LAST - 1, LAST]
