"""The store of views in SQLite: its contract, its files, and full disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import StoreError
from heron.spi.store import Batch
from heron_store_sqlite import SqliteViewStore
from heron_testing.contracts.store import ViewStoreContract
from heron_testing.faults import FULL_BYTES, full_files, path_away


class TestContract(ViewStoreContract):
    name = "sqlite"
    driver_class = SqliteViewStore

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"folder": str(tmp_path / "views")}


@pytest.fixture
def store(tmp_path: Path) -> SqliteViewStore:
    return SqliteViewStore.open({"folder": str(tmp_path / "views")})


def test_files_are_for_their_owner_alone(store: SqliteViewStore, tmp_path: Path) -> None:
    """The values may be figures of a business; so are the logs beside the file."""
    store.stage("view", 0, 1, {(0, b"key"): b"value"})
    files = list((tmp_path / "views").iterdir())
    assert {each.name for each in files} == {"view.db", "view.db-wal", "view.db-shm"}
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
    assert (tmp_path / "views").stat().st_mode & 0o777 == 0o700


def test_reading_creates_nothing(store: SqliteViewStore, tmp_path: Path) -> None:
    """A misspelt name in a query must not leave a file."""
    store.read("view", [b"key"])
    store.keys("view")
    store.drop("view")
    assert not (tmp_path / "views").exists()


def test_a_full_disk_changes_nothing_and_a_later_write_succeeds(store: SqliteViewStore) -> None:
    """The checkpoint fails, and the next one succeeds."""
    store.stage("view", 0, 1, {(0, b"key"): b"former"})
    store.publish("view", 0, 1, 1)
    large = {(0, b"%d" % number): bytes(1000) for number in range(FULL_BYTES // 250)}
    with full_files(), pytest.raises(StoreError, match=r"view view in /.*view\.db: .*; free some space"):
        store.stage("view", 0, 2, {(0, b"key"): b"new", **large})
    store.publish("view", 0, 2, 2)
    assert store.keys("view") == [b"key"]
    assert store.read("view", [b"key"]).live == {b"key": [b"former"]}
    store.stage("view", 0, 3, {(0, b"key"): b"new", **large})
    store.publish("view", 0, 3, 3)
    assert store.read("view", [b"key"]).live == {b"key": [b"new"]}


def test_a_folder_that_cannot_be_used_is_named(store: SqliteViewStore, tmp_path: Path) -> None:
    """Two options were mixed up."""
    with path_away(tmp_path / "views"):
        with pytest.raises(StoreError, match=r"folder /.*/views: cannot be used.*choose another store\.folder"):
            store.check(1.0)
        with pytest.raises(StoreError, match=r"view view in /.*choose another store\.folder"):
            store.publish("view", 0, 1, 1)


def test_a_file_that_is_no_database_is_named(store: SqliteViewStore, tmp_path: Path) -> None:
    """Someone has put it there."""
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "view.db").write_text("no database " * 100)
    with pytest.raises(StoreError, match=r"view\.db: file is not a database; check the file"):
        store.read("view", [b"key"])


def test_drop_gives_the_space_back(store: SqliteViewStore, tmp_path: Path) -> None:
    """A view of another experiment was large. The empty file stays."""
    store.stage_batch("view", Batch(0, "run"), 0, {b"%d" % number: bytes(1000) for number in range(3000)})
    store.publish_batch("view", Batch(0, "run"), 0, 1)
    store.drop("view")
    del store
    assert sum(each.stat().st_size for each in (tmp_path / "views").iterdir()) < 200_000
