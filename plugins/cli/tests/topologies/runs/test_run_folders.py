"""The folders of a run: they are private and short enough for sockets, and old logs are removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heron.errors import LimitExceededError, UsageError
from heron_cli.topologies.runs.run_folders import make_log_dir, make_run_dir, name_log_dir, name_run_dir, prune_logs


def test_a_run_directory_is_private_and_new(tmp_path: Path) -> None:
    """Only the mode of the folder protects the sockets in it."""
    parent = Path("/tmp") if len(str(tmp_path)) > 50 else tmp_path  # noqa: S108 - a short path is the point
    first, second = name_run_dir(str(parent)), name_run_dir(str(parent))
    assert not first.exists(), "it is noted before it is made"
    make_run_dir(first)
    make_run_dir(second)
    assert first != second
    assert first.stat().st_mode & 0o777 == 0o700
    first.rmdir()
    second.rmdir()


def test_a_path_too_long_for_sockets_is_refused_with_its_remedy(tmp_path: Path) -> None:
    """Otherwise a bind would fail later, in another process, with only an error number."""
    with pytest.raises(LimitExceededError, match=r"the limit is 107 bytes; set .* or TMPDIR"):
        name_run_dir(str(tmp_path / ("x" * 100)))


def test_an_existing_run_directory_is_refused(tmp_path: Path) -> None:
    """Other users may create folders there and guess the name, so a run never uses an existing folder."""
    path = tmp_path / "heron-0"
    path.symlink_to(tmp_path)
    with pytest.raises(UsageError, match=r"File exists; set run.run_dir or TMPDIR"):
        make_run_dir(path)


def test_only_the_newest_twenty_logs_are_kept(tmp_path: Path) -> None:
    """Logs must not fill the disk. Those of a running topology are kept whatever their age."""
    logs = tmp_path / "logs"
    for number in range(30):
        folder = logs / f"old-{number}"
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
    new = name_log_dir(str(logs), "words-1")
    make_log_dir(new)
    prune_logs(logs, {str(logs / "old-3"), str(new)})
    assert new.stat().st_mode & 0o777 == 0o700
    kept = {each.name for each in logs.iterdir()}
    assert kept == {"words-1", "old-3", *(f"old-{number}" for number in range(11, 30))}
