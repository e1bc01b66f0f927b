"""The folders of a run: private, short enough for sockets, and logs that do not pile up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heron.errors import LimitExceededError
from heron.submit.folders import make_log_dir, make_run_dir


def test_a_run_directory_is_private_and_new(tmp_path: Path) -> None:
    """Sockets in it are protected by nothing else."""
    parent = Path("/tmp") if len(str(tmp_path)) > 50 else tmp_path  # noqa: S108 - a short path is the point
    first, second = make_run_dir(str(parent)), make_run_dir(str(parent))
    assert first != second
    assert first.stat().st_mode & 0o777 == 0o700
    first.rmdir()
    second.rmdir()


def test_a_path_too_long_for_sockets_is_refused_with_its_remedy(tmp_path: Path) -> None:
    """A bind would fail much later, in another process, with a number."""
    with pytest.raises(LimitExceededError, match=r"the limit is 107 bytes; set .* or TMPDIR"):
        make_run_dir(str(tmp_path / ("x" * 100)))


def test_only_the_newest_twenty_logs_are_kept(tmp_path: Path) -> None:
    """A disc that fills with logs stops other programs as well."""
    for number in range(30):
        folder = tmp_path / "logs" / f"old-{number}"
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
    new = make_log_dir(str(tmp_path / "logs"), "words-1")
    assert new.stat().st_mode & 0o777 == 0o700
    kept = {each.name for each in (tmp_path / "logs").iterdir()}
    assert kept == {"words-1", *(f"old-{number}" for number in range(11, 30))}
