"""The folder of a job: its files, and its removal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heron.driver_kit.private_files import write_private
from heron_scheduler_kit.job_folder import JobFolder
from heron_testing.faults import full_files


def test_removal_covers_files_and_folders_but_not_targets_of_links(tmp_path: Path) -> None:
    """A program of the scheduler may keep folders there; nothing outside may be removed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    folder = JobFolder(tmp_path / "job")
    lock = folder.lock(make=True)
    assert lock is not None
    try:
        (folder.path / "scratch" / "deep").mkdir(parents=True)
        (folder.path / "scratch" / "deep" / "file").touch()
        (folder.path / "link").symlink_to(outside)
        folder.empty()
        assert [each.name for each in folder.path.iterdir()] == ["lock"]
        folder.remove()
    finally:
        os.close(lock)
    assert not folder.path.exists()
    assert (outside / "kept").exists()


def test_the_containers_of_a_job_are_those_that_have_a_spec(tmp_path: Path) -> None:
    """An update adds and removes specs; a later supervisor or driver starts with the present ones."""
    for name in ("c0.json", "c12.json", "c3.json", "c7.json.tmp", "job.json", "c4.error", "control"):
        (tmp_path / name).touch()
    assert JobFolder(tmp_path).container_ids() == (0, 3, 12)


def test_a_write_to_a_full_disk_leaves_no_partial_file(tmp_path: Path) -> None:
    """The file may be a spec with a password, in a folder that no process cleans up later."""
    path = tmp_path / "c1.json"
    write_private(path, b"former")
    with full_files(100), pytest.raises(OSError, match="File too large"):
        write_private(path, b"secret" * 100)
    assert [each.name for each in tmp_path.iterdir()] == ["c1.json"]
    assert path.read_bytes() == b"former"
