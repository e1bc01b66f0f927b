"""The executors on Mesos keep the contract of the kit, on a server written from the published contract of Mesos."""

from __future__ import annotations

import os
import selectors
import sys
from pathlib import Path

import msgspec
import pytest

from heron.driver_kit.child_processes import ProcessIdentity
from heron_scheduler_kit.contract import ExecutorsContract, SupervisedJob
from heron_scheduler_kit.executors import JobLeftError
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_mesos.mesos_executors import MesosExecutors
from heron_scheduler_mesos.options import MesosOptions
from heron_testing_servers.mesos import MesosCluster


class TestMesosExecutors(ExecutorsContract):
    """Executors as tasks of a framework."""

    @pytest.fixture(autouse=True)
    def _cluster(self, mesos: MesosCluster, tmp_path: Path) -> None:
        mesos.start()
        self.mesos = mesos
        self.key = key = tmp_path / "key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        self.made = MesosOptions(masters=(mesos.url,), key_file=str(key), python=sys.executable, stop_grace_s=2.0)

    def options(self) -> dict[str, object]:
        """Return the options for the master of the session."""
        found = msgspec.to_builtins(self.made)
        assert isinstance(found, dict)
        return found

    def make(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> MesosExecutors:
        """Return executors of this process, without a supervisor."""
        return MesosExecutors(folder, record, selector)

    @pytest.mark.parametrize("key", [True, False], ids=["stopped", "key"])
    def test_a_supervisor_that_does_not_take_over_leaves_the_containers(self, job: SupervisedJob, key: bool) -> None:
        """`heron restart` of a running topology fails: it must not end what it was to mend."""
        job.start(1)
        identity = ProcessIdentity.of(job.running(1).pid)
        with selectors.DefaultSelector() as selector:
            again = self.make(job.executors.folder, job.executors.record, selector)
            if key:
                again.begin()
            else:
                self.key.unlink()
                with pytest.raises(JobLeftError, match="does not exist"):
                    again.begin()
            again.close()
        assert len(self.mesos.state()["frameworks"]) == 1
        assert identity.alive()

    def test_a_container_that_was_removed_can_be_added_again(self, job: SupervisedJob) -> None:
        """Its attempts begin with 1 again. Here it is removed before Mesos has heard of it, and while it runs."""
        job.start(1)
        job.executors.kill(1)
        assert job.ended(1).error == "it had not started"
        job.start(1)
        former = job.running(1)
        job.executors.terminate(1)
        job.wait(lambda: len(job.exits(1)) == 2, "the container has ended again")
        job.start(1)
        assert job.running(1).pid != former.pid
        assert len(job.exits(1)) == 2
