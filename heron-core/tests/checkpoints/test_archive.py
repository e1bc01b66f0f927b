"""The archive: what it finds, what it refuses, and that it removes nothing that a checkpoint needs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from heron.checkpoints.archive import CheckpointArchive, places_of
from heron.checkpoints.manifest import CheckpointId, CheckpointManifest, Place, TaskSnapshot
from heron.errors import CheckpointError
from heron_testing.memory_checkpoints import MemoryCheckpointStore

GROUPS = 4


class SavingRun:
    """A run of one task that saves the key groups that changed, as an instance does; a model of its checkpoints."""

    def __init__(self, archive: CheckpointArchive, run: str = "words-1") -> None:
        self.archive = archive
        self.run = run
        self.number = 0
        self.places: dict[int, Place] = {}
        self.content: dict[int, bytes] = {}
        self.complete: dict[CheckpointId, dict[int, bytes]] = {}

    def save(self, groups: Sequence[int], *, completes: bool = True) -> CheckpointManifest:
        """Save these groups; the manifest refers to older objects for the others."""
        self.number += 1
        at = CheckpointId(self.run, self.number)
        name = self.archive.task_object(at, 1)
        payloads = [f"{self.run}: group {each} at {self.number}".encode() for each in groups]
        self.archive.save(name, payloads)
        places = self.places | dict(zip(groups, places_of(name, payloads), strict=True))
        manifest = manifest_of(at, places)
        if completes:
            self.archive.save_manifest(manifest)
            self.places = places
            self.content |= dict(zip(groups, payloads, strict=True))
            self.complete[at] = dict(self.content)
        return manifest


def manifest_of(at: CheckpointId, places: dict[int, Place]) -> CheckpointManifest:
    task = TaskSnapshot(1, "count", groups=places)
    return CheckpointManifest("words", at.run, at.number, 1e9, 0.1, GROUPS, (task,))


def loaded(archive: CheckpointArchive, at: CheckpointId) -> dict[int, bytes]:
    (task,) = archive.manifest(at).tasks
    return {group: archive.load(place) for group, place in task.groups.items()}


@pytest.fixture
def store() -> MemoryCheckpointStore:
    return MemoryCheckpointStore()


@pytest.fixture
def archive(store: MemoryCheckpointStore) -> CheckpointArchive:
    return CheckpointArchive(store, "words")


@given(payloads=st.lists(st.binary(max_size=50), max_size=8))
def test_each_payload_returns_from_its_place(payloads: list[bytes]) -> None:
    """Also empty payloads, and an object without any."""
    archive = CheckpointArchive(MemoryCheckpointStore(), "words")
    name = archive.task_object(CheckpointId("words-1", 1), 3)
    archive.save(name, payloads)
    assert [archive.load(each) for each in places_of(name, payloads)] == payloads


def test_names_sort_by_number(archive: CheckpointArchive) -> None:
    """A store lists names in the order of their text."""
    names = [archive.task_object(CheckpointId("words-1", number), 3) for number in (9, 10, 100)]
    assert names == sorted(names)
    assert names[0] == "words/words-1/0000000009/task-3"


@given(cut=st.integers(0, 9), data=st.data())
def test_a_payload_that_was_cut_or_changed_is_refused(cut: int, data: st.DataObject) -> None:
    """The error names the object and the place in it."""
    store = MemoryCheckpointStore()
    archive = CheckpointArchive(store, "words")
    name = archive.task_object(CheckpointId("words-1", 1), 3)
    payloads = [b"first", b"other"]
    archive.save(name, payloads)
    place = places_of(name, payloads)[cut // 5]
    whole = store.objects[name]
    store.objects[name] = whole[:cut]
    with pytest.raises(CheckpointError, match="task-3"):
        archive.load(place)
    changed = bytes([whole[cut] ^ data.draw(st.integers(1, 255))])
    store.objects[name] = whole[:cut] + changed + whole[cut + 1 :]
    with pytest.raises(CheckpointError, match=f"task-3: 5 bytes at {place.start} are torn or changed"):
        archive.load(place)


def test_a_checkpoint_without_a_manifest_does_not_exist(archive: CheckpointArchive) -> None:
    """Its tasks have not all saved."""
    run = SavingRun(archive)
    run.save([0])
    run.save([0], completes=False)
    assert archive.checkpoints() == (CheckpointId("words-1", 1),)
    with pytest.raises(CheckpointError, match="0000000002/manifest: does not exist"):
        archive.manifest(CheckpointId("words-1", 2))


@pytest.mark.parametrize(
    "other", [{"topology": "others"}, {"run": "words-2"}, {"number": 7}], ids=lambda each: next(iter(each))
)
def test_the_manifest_of_another_checkpoint_is_refused(
    archive: CheckpointArchive, store: MemoryCheckpointStore, other: dict[str, object]
) -> None:
    """Somebody copied it there; its state belongs to other tasks or another moment."""
    manifest = SavingRun(archive).save([0])
    strange = replace(manifest, **other)  # one field of the right type
    elsewhere = MemoryCheckpointStore()
    CheckpointArchive(elsewhere, strange.topology).save_manifest(strange)
    (copied,) = elsewhere.objects.values()
    store.objects["words/words-1/0000000001/manifest"] = copied
    with pytest.raises(CheckpointError, match=r"0000000001/manifest: holds checkpoint .*; use another checkpoint"):
        archive.manifest(manifest.id)


def test_checkpoints_are_in_the_order_of_their_runs_and_numbers(
    archive: CheckpointArchive, store: MemoryCheckpointStore
) -> None:
    """The last one is the newest of the last run, whatever the names of the runs say."""
    store.now_s = 10.0
    older = SavingRun(archive, "words-z")
    for _ in range(11):
        older.save([0])
    store.now_s = 20.0
    newer = SavingRun(archive, "words-a")
    newer.save([0])
    SavingRun(archive, "words-b").save([0], completes=False)
    assert [str(each) for each in archive.checkpoints()][-3:] == ["words-z/10", "words-z/11", "words-a/1"]
    assert archive.checkpoints("words-z") == tuple(older.complete)
    assert archive.checkpoints("words-b") == ()
    assert CheckpointArchive(store, "word").checkpoints() == ()


def test_other_objects_of_the_store_are_no_checkpoints(
    archive: CheckpointArchive, store: MemoryCheckpointStore
) -> None:
    """Somebody may keep other files there."""
    for name in ("words/words-1/notes", "words/words-1/first/manifest", "words/words-1/0000000001/a/manifest"):
        store.store(name, b"")
    assert archive.checkpoints() == ()


def test_errors_of_the_store_reach_the_caller(archive: CheckpointArchive, store: MemoryCheckpointStore) -> None:
    """The archive hides none of them."""
    manifest = SavingRun(archive).save([0])
    store.refusal = "the store is away"
    for call in (
        lambda: archive.save("words/words-1/0000000002/task-1", [b""]),
        lambda: archive.load(Place("words/words-1/0000000001/task-1", 0, 1, 0)),
        lambda: archive.save_manifest(manifest),
        lambda: archive.manifest(manifest.id),
        archive.checkpoints,
        lambda: archive.dispose_others("words-1", [manifest], 9),
        lambda: archive.delete(manifest.id, []),
    ):
        with pytest.raises(CheckpointError, match="the store is away"):
            call()


class DyingStore(MemoryCheckpointStore):
    """Refuses to remove anything after the first `allowed` objects, as if the process had died."""

    allowed = 1_000_000

    def dispose(self, names: object) -> None:
        """Remove the first objects."""
        for name in names:  # type: ignore[attr-defined]  # an iterable of names
            if not self.allowed:
                raise KeyboardInterrupt
            self.allowed -= 1
            super().dispose([name])


@given(data=st.data())
def test_nothing_that_a_checkpoint_needs_is_ever_removed(data: st.DataObject) -> None:
    """Random saves, failures, deletes and clean-ups that may die in the middle: what exists can be restored exactly."""
    store = DyingStore()
    archive = CheckpointArchive(store, "words")
    run = SavingRun(archive)
    groups = st.lists(st.integers(0, GROUPS - 1), unique=True, max_size=GROUPS)
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(["save", "save", "fail", "keep", "delete"]))
        if step in {"save", "fail"}:
            run.save(data.draw(groups), completes=step == "save")
            continue
        present = archive.checkpoints()
        dies = data.draw(st.booleans())
        store.allowed = data.draw(st.integers(0, 4)) if dies else 1_000_000
        try:
            if step == "keep" and present:
                kept = [archive.manifest(each) for each in present[-data.draw(st.integers(1, 3)) :]]
                archive.dispose_others(run.run, kept, kept[-1].number)
                folders = {f"words/words-1/{each.number:010d}/manifest" for each in kept}
                needed = folders | {name for each in kept for name in each.objects()}
                older = {name for name in store.objects if int(name.split("/")[2]) < kept[-1].number}
                assert older <= needed, "clean-up leaves objects that nothing needs"
            elif step == "delete" and len(present) > 1:
                gone = data.draw(st.sampled_from(present[:-1]))
                archive.delete(gone, [archive.manifest(each) for each in present if each != gone])
                assert gone not in archive.checkpoints()
        except KeyboardInterrupt:
            assert dies
        for each in archive.checkpoints():
            assert loaded(archive, each) == run.complete[each]
    if run.complete:
        assert archive.checkpoints()[-1] == max(run.complete)


def test_deleting_every_checkpoint_of_a_run_leaves_nothing(
    archive: CheckpointArchive, store: MemoryCheckpointStore
) -> None:
    """Also payloads in objects of checkpoints that were removed before."""
    run = SavingRun(archive)
    for groups in ([0, 1], [1], [1], [0]):
        run.save(groups)
    manifests = {each: archive.manifest(each) for each in run.complete}
    archive.dispose_others("words-1", [manifests[each] for each in list(manifests)[2:]], 3)
    assert "words/words-1/0000000001/task-1" in store.objects
    for at in archive.checkpoints():
        archive.delete(at, [manifests[each] for each in archive.checkpoints() if each != at])
    assert store.objects == {}


def test_a_checkpoint_of_another_run_keeps_what_it_needs(archive: CheckpointArchive) -> None:
    """A run that began with a checkpoint of another run refers to the payloads there."""
    first = SavingRun(archive)
    first.save([0, 1])
    second = SavingRun(archive, "words-2")
    second.places, second.content = dict(first.places), dict(first.content)
    second.save([1])
    (old, new) = (*first.complete, *second.complete)
    archive.delete(old, [archive.manifest(new)])
    assert archive.checkpoints() == (new,)
    assert loaded(archive, new) == second.complete[new]


def test_clean_up_leaves_checkpoints_under_way_alone(archive: CheckpointArchive, store: MemoryCheckpointStore) -> None:
    """Tasks save the next checkpoint while the leader cleans up after the last."""
    run = SavingRun(archive)
    older, newest = run.save([0]), run.save([0])
    run.save([0], completes=False)
    archive.delete(older.id, [newest])
    assert "words/words-1/0000000003/task-1" in store.objects
    archive.dispose_others("words-1", [newest], newest.number)
    assert "words/words-1/0000000003/task-1" in store.objects
