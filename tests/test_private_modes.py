"""Folders and files with secrets or code: each is refused at the start when other users can access it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from heron.driver_kit.private_files import read_secret
from heron.errors import HeronError
from heron.kernel.role_spec import StmgrSpec, read_spec
from heron.spi.scheduler import ContainerSpec
from heron_checkpoint_localfs import LocalfsCheckpointStore
from heron_cli.topologies.runs.run_folders import is_run_dir
from heron_scheduler_kit.run_dir import own_run_dir
from heron_scheduler_local.scheduler import LocalScheduler
from heron_service_tracker.calls.audit_file import AuditFile
from heron_service_tracker.http.access_token import read_token
from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_uploader_localfs import LocalfsUploader

Use = Callable[[Path], object]


def _store(folder: Path) -> None:
    LocalfsCheckpointStore.open({"root": str(folder)}).store("t/1", b"x")


def _upload(folder: Path) -> None:
    package = folder.parent / "package"
    package.write_bytes(b"x")
    LocalfsUploader.open({"root": str(folder)}).upload(package, "t")


def _take(folder: Path) -> None:
    scheduler = LocalScheduler.open({"root": str(folder)})
    os.close(scheduler._take(scheduler._folder("t")))


FOLDERS: dict[str, Use] = {
    "state": lambda folder: LocalFsStateManager.open({"root": str(folder)}),
    "jobs": _take,
    "packages": _upload,
    "checked packages": lambda folder: LocalfsUploader.open({"root": str(folder)}).check(1.0),
    "checkpoints": _store,
    "checked checkpoints": lambda folder: LocalfsCheckpointStore.open({"root": str(folder)}).check(1.0),
    "run directory": own_run_dir,
}
FILES: dict[str, Use] = {
    "secret": lambda file: read_secret(str(file)),
    "spec of a container": lambda file: read_spec(file, ContainerSpec),
    "spec of a process": lambda file: read_spec(file, StmgrSpec),
    "token": lambda file: read_token(file, None),
    "audit": lambda file: AuditFile(file).append(action="kill"),
}


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o750, 0o755, 0o770, 0o777])
@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_that_others_can_access_is_refused(tmp_path: Path, kind: str, mode: int) -> None:
    """Others could read keys, or put code in the place of what is unpacked or unpickled."""
    folder = tmp_path / "some folder"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(HeronError) as refused:
        FOLDERS[kind](folder)
    _check_message(str(refused.value), folder, mode, "700")
    folder.chmod(0o700)
    FOLDERS[kind](folder)  # it is the mode alone


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o640, 0o644, 0o660, 0o666])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_others_can_access_is_refused(tmp_path: Path, kind: str, mode: int) -> None:
    """The message does not show what the file has."""
    file = tmp_path / "a file"
    file.write_text("a-secret-of-the-tests", encoding="utf-8")
    file.chmod(mode)
    with pytest.raises(HeronError) as refused:
        FILES[kind](file)
    _check_message(str(refused.value), file, mode, "600")
    assert "a-secret" not in str(refused.value)


def test_a_run_directory_that_others_can_access_is_not_taken_for_one(tmp_path: Path) -> None:
    """Commands neither use nor remove it."""
    folder = tmp_path / "heron-01234567"
    folder.mkdir(mode=0o755)
    assert not is_run_dir(folder)
    folder.chmod(0o700)
    assert is_run_dir(folder)


def _check_message(message: str, path: Path, mode: int, wanted: str) -> None:
    assert str(path) in message
    assert f"{mode:04o}" in message
    assert f"0{wanted}" in message
    assert f"chmod {wanted} {shlex.quote(str(path))}" in message
