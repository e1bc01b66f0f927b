"""The stored jobs, which several commands change at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.cluster import JobChangedError, JobExistsError
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_slurm.job_store import JobStore

JOB = ManagedJob("t", "t-1", owner="ann")


def test_of_several_commands_one_stores_the_job(tmp_path: Path) -> None:
    """Two submissions of one name at the same moment must not share a folder."""

    def add(number: int) -> str:
        try:
            JobStore(tmp_path / "jobs").add(replace(JOB, topology_id=f"t-{number}"))
        except JobExistsError:
            return ""
        return f"t-{number}"

    with ThreadPoolExecutor(8) as threads:
        stored = [each for each in threads.map(add, range(8)) if each]
    found = JobStore(tmp_path / "jobs").find("t")
    assert found is not None
    assert [found.job.topology_id] == stored


def test_a_change_of_an_older_version_changes_nothing(tmp_path: Path) -> None:
    """The second of two updates must read the job again, or it would undo the first."""
    store = JobStore(tmp_path)
    store.add(JOB)
    first = store.find("t")
    assert first is not None
    store.replace(replace(JOB, role="ads"), first.version)
    with pytest.raises(JobChangedError):
        store.replace(replace(JOB, role="web"), first.version)
    second = store.find("t")
    assert second is not None
    assert (second.job.role, second.version != first.version) == ("ads", True)


def test_a_removed_job_does_not_come_back(tmp_path: Path) -> None:
    """An update beside a kill would leave a name that nobody can use."""
    store = JobStore(tmp_path)
    store.add(JOB)
    store.remove("t")
    with pytest.raises(JobChangedError):
        store.replace(JOB, "1")
    assert store.find("t") is None
    assert list(tmp_path.iterdir()) == []
    store.remove("t")


def test_files_with_secrets_are_for_their_owner(tmp_path: Path) -> None:
    """The folder is on a file system that all users of the cluster see."""
    store = JobStore(tmp_path / "jobs")
    store.add(JOB)
    store.write("t", "1", b"secret", "script")
    modes = {each.name: each.stat().st_mode & 0o777 for each in [store.home("t"), *store.home("t").iterdir()]}
    assert modes == {"t": 0o700, "job.1": 0o600, "1.launch": 0o600, "1.sh": 0o600, "1.out": 0o600}
    store.withdraw("t", "1")
    assert not (store.home("t") / "1.launch").exists()


def test_a_folder_that_cannot_be_used_names_the_remedy(tmp_path: Path) -> None:
    """A file is in the place of the folder: root may write to every folder."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SchedulerError, match=r"scheduler\.root"):
        JobStore(tmp_path / "file").add(JOB)


def test_a_check_changes_nothing_and_names_the_option(tmp_path: Path) -> None:
    """`heron profiles check` is asked before the first job, when the folder does not exist yet."""
    JobStore(tmp_path / "new" / "jobs").check()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SchedulerError, match=r"/proc/heron.*set scheduler\.root to a folder that you may write"):
        JobStore(Path("/proc/heron")).check()
