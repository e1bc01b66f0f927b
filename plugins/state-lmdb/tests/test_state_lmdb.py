"""The LMDB state backend: its contract, its files, and its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import ConfigError, KeyedStateError
from heron_state_lmdb import LmdbStateBackend
from heron_testing.contracts.state import StateBackendContract
from heron_testing.faults import Faults, file_faults


class TestContract(StateBackendContract):
    name = "lmdb"
    driver_class = LmdbStateBackend

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"folder": str(tmp_path / "state")}

    @pytest.fixture
    def faults(self, tmp_path: Path) -> Faults:
        return file_faults(tmp_path / "state")


def test_the_files_have_no_names_and_are_in_the_folder_of_the_run(tmp_path: Path) -> None:
    """Nobody else can open them, and nothing stays behind."""
    store = LmdbStateBackend.open({}).create(tmp_path / "run")
    store.write({(1, b"key"): b"value"})
    assert list((tmp_path / "run").iterdir()) == []
    store.close()


def test_the_limit_of_a_task_is_named_and_changes_nothing(tmp_path: Path) -> None:
    """People must find the setting; a state that needs more may be divided among more tasks."""
    store = LmdbStateBackend.open({"max_bytes": 2 * 1024 * 1024}).create(tmp_path)
    store.write({(1, b"key"): b"old"})
    with pytest.raises(KeyedStateError, match=r"the limit of 2097152 bytes \(state.max_bytes\); raise it"):
        store.write({(1, b"key"): b"new", (2, b"key"): bytes(3_000_000)})
    assert (store.get(1, b"key"), store.get(2, b"key")) == (b"old", None)
    store.write({(1, b"key"): b"new"})
    assert store.get(1, b"key") == b"new"
    store.close()


@pytest.mark.parametrize("max_bytes", [0, -1, 1024, "1GB", 1 << 50, None])
def test_a_limit_that_is_no_size_is_refused(max_bytes: object) -> None:
    """Before the topology starts."""
    with pytest.raises(ConfigError, match=r"state\.max_bytes"):
        LmdbStateBackend.open({"max_bytes": max_bytes})


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    """Two options were mixed up."""
    path = tmp_path / "file"
    path.write_text("no folder")
    backend = LmdbStateBackend.open({"folder": str(path)})
    with pytest.raises(KeyedStateError, match=f"folder {path}: cannot be used"):
        backend.check(1.0)
    with pytest.raises(KeyedStateError, match=rf"folder {path}: .*choose another state\.folder"):
        backend.create(tmp_path)
