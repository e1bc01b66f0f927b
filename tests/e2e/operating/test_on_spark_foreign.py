"""A standalone Spark whose master or workers have another Python, and an environment as an archive."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.version import __version__

from heron_testing.waiting import wait_until
from heron_testing_servers.absence import not_here
from heron_testing_servers.install import ServerNotInstalledError, installed, python_packages
from heron_testing_servers.spark import SparkCluster
from heron_testing_servers.zookeeper import ZooKeeperServer
from spark_journal import BACK_S, HERE, SUBMITTED_S, fresh, name_cluster, refusal
from visible_data import command_lines

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

pytestmark = pytest.mark.servers

_GONE_S = 10.0
_OLD = "3.5.6"
_ANSWER_S = 20.0
_SECRET = "kept-to-itself-4711"


@pytest.fixture
def cluster(sandbox: Sandbox, spark: SparkCluster) -> SparkCluster:
    """The complete, empty cluster, and the profile ``cluster`` that names it."""
    return fresh(sandbox, spark)


@pytest.mark.soak
def test_workers_run_the_python_of_an_archive(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """Workers without a suitable Python run the one in an archive, for all processes of each container."""
    packed = sandbox.root / "env.tar.gz"
    folder = sandbox.root / "env"
    _make_environment(folder)
    with tarfile.open(packed, "w:gz") as archive:
        for part in ("bin", "lib", "pyvenv.cfg"):
            archive.add(folder / part, part)
    shutil.rmtree(folder)
    settings = (f'scheduler.archives=["{packed}#env"]', "scheduler.python=./env/bin/python")
    words = [word for each in settings for word in ("--set", each)]
    run = sandbox.start("steady.py", *words, command="submit cluster")
    assert run.wait(SUBMITTED_S) == 0, run.all_output
    wait_until((run.out / "progress").exists, BACK_S, "tuples")
    started = run.processes("executor")
    assert len(started) == 3
    work = [str(each.work) for each in cluster.workers]
    for each in started:
        assert each.cmdline()[0].startswith(tuple(work)), each.cmdline()
        assert each.cmdline()[0].endswith("/env/bin/python"), each.cmdline()
    sandbox.output_of("kill", "steady", *HERE)
    wait_until(lambda: not cluster.applications(), _GONE_S, "no application is left")


@pytest.mark.soak
@pytest.mark.parametrize("has_heron", [True, False])
def test_workers_with_another_python_are_named_with_both_versions(
    sandbox: Sandbox, cluster: SparkCluster, has_heron: bool
) -> None:
    """The message gives the version, whatever else that Python lacks."""
    folder = sandbox.root / "other"
    python = _other_python()
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    if has_heron:
        _lead_to_ours(folder)
    version = _version_of(python)
    line = refusal(sandbox, f"python={folder}/bin/python")
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"the workers run Python {version} and this command {ours}; set scheduler.python to" in line, line
    wait_until(lambda: not cluster.applications(), _GONE_S, "no application is left")


def test_a_master_of_another_major_version_is_named_with_both(sandbox: Sandbox, tmp_path: Path) -> None:
    """The message comes at once. Spark itself tries for more than a minute and then calls the masters silent."""
    try:
        found = installed(f"pyspark-{_OLD}", python_packages(f"pyspark=={_OLD}"))
    except ServerNotInstalledError as error:
        not_here(f"Spark {_OLD} cannot be installed: {error}")
    (home,) = found.glob("lib/*/site-packages/pyspark")
    old = SparkCluster(tmp_path, workers=0, home=home)
    old.start()
    try:
        name_cluster(sandbox, old)
        line = refusal(sandbox)
        assert f"at 127.0.0.1 is of version {_OLD}, and this command has pyspark {__version__}" in line, line
    finally:
        old.kill()


@pytest.mark.soak
def test_a_cluster_with_a_secret_accepts_only_clients_that_have_it(sandbox: Sandbox, tmp_path: Path) -> None:
    """Clients without the secret are rejected. Executors get the secret from Spark and pass it to no other process."""
    secret = sandbox.root / "secret"
    secret.write_text(_SECRET, encoding="utf-8")
    secret.chmod(0o600)
    guarded = {"spark.authenticate": "true", "spark.authenticate.secret": _SECRET}
    cluster = SparkCluster(tmp_path, settings=guarded)
    cluster.start()
    try:
        name_cluster(sandbox, cluster)
        assert "gave no application" in refusal(sandbox, "start_s=8")
        _add_to_conf(sandbox, **{"spark.authenticate": "true", "spark.authenticate.secret": f"${{file:{secret}}}"})
        output = sandbox.output_of("profiles", "check", "cluster")
        assert "warning" not in output
        run = sandbox.start("steady.py", command="submit cluster")
        assert run.wait(SUBMITTED_S) == 0, run.all_output
        wait_until((run.out / "progress").exists, BACK_S, "tuples")
        ours = [each for what in ("executor", "instance", "stmgr", "spark driver") for each in run.processes(what)]
        assert len(ours) > 8
        assert not [each for each in ours if _SECRET in str([*each.cmdline(), *each.environ().values()])]
        assert not [each for each in command_lines(sandbox) if _SECRET.encode() in each]
        sandbox.output_of("kill", "steady", *HERE)
    finally:
        cluster.kill()


@pytest.mark.soak
def test_the_leading_master_gives_the_size_of_the_cluster(
    sandbox: Sandbox, zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    """A standby master has no workers; this test names it first."""
    recovery = {
        "spark.deploy.recoveryMode": "ZOOKEEPER",
        "spark.deploy.zookeeper.url": ":".join(map(str, zookeeper.address)),
        "spark.deploy.zookeeper.dir": "/spark-masters",
    }
    leading = SparkCluster(tmp_path, workers=1, settings=recovery)
    standby = SparkCluster(tmp_path / "standby", workers=0, settings=recovery)
    standby.folder.mkdir()
    try:
        leading.start()
        standby.start()
        name_cluster(sandbox, leading)
        both = f"{standby.url},{leading.url.removeprefix('spark://')}"
        line = refusal(sandbox, f"master={both}", "jvm_heap_mb=60000")
        assert "cluster has 127.0.0.1 32 cores and 32768 MiB" in line, line
        run = sandbox.start("steady.py", "--set", f"scheduler.master={both}", command="submit cluster")
        assert run.wait(SUBMITTED_S) == 0, run.all_output
        sandbox.output_of("kill", "steady", *HERE)
    finally:
        standby.kill()
        leading.kill()


def _add_to_conf(sandbox: Sandbox, **settings: str) -> None:
    file = sandbox.home / ".heron" / "profiles" / "cluster.yaml"
    added = "conf: {" + "".join(f'{name}: "{value}", ' for name, value in settings.items())
    file.write_text(file.read_text(encoding="utf-8").replace("conf: {", added), encoding="utf-8")


def _make_environment(folder: Path) -> None:
    venv.create(folder, symlinks=True, with_pip=False)
    _lead_to_ours(folder)


def _lead_to_ours(folder: Path) -> None:
    """Make the packages installed here importable there."""
    (packages,) = folder.glob("lib/python3*/site-packages")
    ours = next(each for each in site.getsitepackages() if each.startswith(sys.prefix))
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n", encoding="utf-8")


def _other_python() -> str:
    """Return an interpreter of another minor version."""
    names = [f"python3.{minor}" for minor in range(11, 16) if minor != sys.version_info.minor]
    beside = [str(each) for name in names for each in Path(sys.base_prefix).parent.glob(f"*/bin/{name}")]
    runs = [each for each in (*filter(None, map(shutil.which, names)), *beside) if _version_of(each)]
    if not runs:
        not_here("the only Python 3 here is the one that runs the tests")
    return runs[0]


def _version_of(python: str) -> str:
    """Return its version; "" if it does not run, as with the shims of version managers."""
    ask = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    ran = subprocess.run(
        ask, capture_output=True, text=True, timeout=_ANSWER_S, check=False, env={"PATH": os.environ.get("PATH", "")}
    )
    return ran.stdout.strip() if ran.returncode == 0 else ""
