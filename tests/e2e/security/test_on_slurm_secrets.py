"""The keys of a topology on Slurm and the passwords of its drivers: what other users of the cluster may see."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from secret_places import check_holders, files_with, secrets_of, shown_by

from heron_testing.heron_run import processes_of
from heron_testing.waiting import wait_until
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.slurm import SlurmCluster
from heron_testing_servers.zookeeper import ZooKeeperServer
from on_cluster import BACK_S
from slurm_place import SlurmPlace, fresh_slurm

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_HOLDERS = {"N.launch", "tmanager.json", "stmgr.json", "metricsmgr.json"}


@pytest.fixture
def place(sandbox: Sandbox, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmPlace]:
    """The complete, empty cluster, and the profile ``my-slurm`` that names it."""
    with fresh_slurm(sandbox, slurm, monkeypatch) as place:
        yield place


def test_slurm_shows_no_secret(place: SlurmPlace, zookeeper: ZooKeeperServer, s3: S3Server) -> None:
    """With the shipped profile: jobs, scripts, processes, logs, and the files of Slurm and of Heron."""
    commands = place.use_servers(zookeeper, s3)
    run = commands.submit("steady.py")
    wait_until((run.out / "progress").exists, BACK_S, "the first counts")
    secrets = secrets_of(commands, "steady")
    numbers = place.slurm.ask("squeue", "-h", "-o", "%A").split()
    scripts = [place.slurm.ask("scontrol", "write", "batch_script", each, "-") for each in numbers]
    assert len(scripts) == 2 * 3, "each container has a job and its successor"
    shown = [place.slurm.ask("squeue", "-o", "%all"), place.slurm.ask("scontrol", "show", "job", "-dd"), *scripts]
    shown += [commands.output_of("logs", "steady"), commands.output_of("status", "steady", "--json")]
    assert [each for each in shown if any(secret in each for secret in secrets)] == []
    assert shown_by(secrets, processes_of(place.sandbox.home)) == []
    check_holders(secrets, place.sandbox.root, _HOLDERS)
    assert files_with(secrets, Path(place.slurm.environment["SLURM_CONF"]).parent) == []
    jobs = place.sandbox.home / ".heron" / "jobs"
    modes = {stat.S_IMODE(each.stat().st_mode) for each in jobs.rglob("*") if each.is_file()}
    assert (stat.S_IMODE(jobs.stat().st_mode), modes) == (0o700, {0o600})
    commands.output_of("kill", "steady")
    place.leaves_nothing()
    assert files_with(secrets, place.sandbox.root) == []
