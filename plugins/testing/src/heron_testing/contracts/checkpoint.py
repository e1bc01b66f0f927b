"""The contract suite of checkpoint stores."""

from __future__ import annotations

import pytest

from heron.errors import CheckpointError
from heron.spi.checkpoint import CheckpointStore
from heron_testing.contracts.fault_cases.checkpoint_faults import CheckpointStoreFaultCases

__all__ = ["CheckpointStoreContract"]

_NAME = "words/words-1/0000000001/task-1"
_REFUSED = [
    "",
    "words",
    "/words/task-1",
    "words/",
    "words//task-1",
    "words/./task-1",
    "words/../task-1",
    "words/.task-1",
    "words/task-1.",
    "words/a b",
    "words/a\\b",
    "words/a\0b",
    "words/a\n",
    "wörds/task-1",
    f"words/{'a' * 201}",
    "a/b/c/d/e/f/g",
]


class CheckpointStoreContract(CheckpointStoreFaultCases):
    """Subclass it with the attributes of `DriverContract` and the fixtures `options` and `faults`."""

    @pytest.mark.parametrize("size", [0, 1, 5 * 1024 * 1024 + 3])
    def test_load_returns_what_was_stored(self, store: CheckpointStore, size: int) -> None:
        """Drivers move objects in pieces, so errors occur at the edges of pieces."""
        data = (bytes(range(251)) * (size // 251 + 1))[:size]
        store.store(_NAME, data)
        assert store.load(_NAME) == data

    @pytest.mark.parametrize(
        ("start", "size"), [(0, 4), (3, 4), (6, 4), (0, 10), (10, 0), (0, 0), (4, None), (10, None)]
    )
    def test_load_returns_a_range(self, store: CheckpointStore, start: int, size: int | None) -> None:
        """A task reads the key groups that it owns, not those beside them."""
        store.store(_NAME, b"0123456789")
        assert store.load(_NAME, start, size) == b"0123456789"[start : None if size is None else start + size]

    @pytest.mark.parametrize(("start", "size"), [(0, 11), (7, 4), (10, 1), (11, 0), (11, None), (-1, 2), (0, -1)])
    def test_a_range_outside_the_object_is_refused(self, store: CheckpointStore, start: int, size: int | None) -> None:
        """An object that is too short was cut; fewer bytes than asked for must not look like state."""
        store.store(_NAME, b"0123456789")
        with pytest.raises(CheckpointError, match="task-1"):
            store.load(_NAME, start, size)

    @pytest.mark.parametrize("name", _REFUSED)
    def test_a_name_that_is_none_is_refused(self, store: CheckpointStore, name: str) -> None:
        """Names come from manifests, which others may have written; none may lead out of the store."""
        for call in (lambda: store.store(name, b"x"), lambda: store.load(name), lambda: store.dispose([name])):
            with pytest.raises(CheckpointError):
                call()

    @pytest.mark.parametrize("prefix", ["", "/", "/words", "words/", "../words", "words/..", ".words", "a/b/c/d/e/f"])
    def test_a_prefix_that_is_none_is_refused(self, store: CheckpointStore, prefix: str) -> None:
        """A prefix leads out of the store as easily as a name."""
        with pytest.raises(CheckpointError):
            store.list(prefix)

    def test_a_missing_object_is_named(self, store: CheckpointStore) -> None:
        """People must see in the error which object is missing."""
        with pytest.raises(CheckpointError, match="task-1"):
            store.load(_NAME)

    def test_another_process_loads_what_was_stored(self, store: CheckpointStore, options: dict[str, object]) -> None:
        """The next incarnation of a task loads, so the driver object may keep no necessary state."""
        store.store(_NAME, b"state")
        assert self.opened(options).load(_NAME) == b"state"

    def test_a_second_store_replaces_the_object(self, store: CheckpointStore) -> None:
        """A task that died after its store saves the checkpoint again, with more or fewer bytes."""
        for data in (b"first", b"another, which is longer", b"x", b""):
            store.store(_NAME, data)
            assert store.load(_NAME) == data
        assert [each.name for each in store.list("words")] == [_NAME]

    def test_the_list_has_names_sizes_and_ages(self, store: CheckpointStore) -> None:
        """Commands show both, and old checkpoints are found by their names."""
        names = ["words/run-1/0000000002/task-1", _NAME, "words/words-1/0000000001/manifest"]
        for size, name in enumerate(names):
            store.store(name, b"x" * size)
        found = store.list("words")
        assert [each.name for each in found] == sorted(names)
        assert {each.name: each.size_bytes for each in found} == {name: size for size, name in enumerate(names)}
        assert all(0.0 <= each.age_s < 60.0 for each in found)

    def test_a_prefix_is_of_whole_parts(self, store: CheckpointStore) -> None:
        """The topology ``word`` must not list or delete the checkpoints of ``words``."""
        for name in ("a/b/x", "a/bc/x", "ab/b/x", "a/b.c/x", "a/b-c/x"):
            store.store(name, b"")
        assert [each.name for each in store.list("a/b")] == ["a/b/x"]
        assert [each.name for each in store.list("a")] == ["a/b-c/x", "a/b.c/x", "a/b/x", "a/bc/x"]
        assert store.list("a/b/x") == ()

    def test_the_list_of_nothing_is_empty(self, store: CheckpointStore) -> None:
        """The first checkpoint of a topology finds no other."""
        assert store.list("words/words-1") == ()

    def test_dispose_removes_these_objects_only(self, store: CheckpointStore) -> None:
        """Others belong to checkpoints that are kept. A missing object is no error, because clean-up is repeated."""
        names = [f"words/words-1/000000000{number}/task-{task}" for number in (1, 2) for task in (1, 2)]
        for name in names:
            store.store(name, b"x")
        store.dispose(iter(names[:3]))
        store.dispose([*names[:3], "words/words-1/0000000009/task-1"])
        assert [each.name for each in store.list("words")] == names[3:]
        assert store.load(names[3]) == b"x"
        with pytest.raises(CheckpointError):
            store.load(names[0])

    def test_an_object_can_be_stored_again_after_dispose(self, store: CheckpointStore) -> None:
        """Empty parents are gone then, and come back."""
        store.store(_NAME, b"first")
        store.dispose([_NAME])
        store.store(_NAME, b"second")
        assert store.load(_NAME) == b"second"
