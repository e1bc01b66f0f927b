"""Drivers that log their passwords, the keys of a topology, and the files that contain them."""

from __future__ import annotations

import json
import re
import stat
import textwrap
import zlib
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from heron.ipc.keys import TopologyKeys
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.topology_keys import decode_keys
from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox
    from on_cluster import OnCluster

__all__ = ["check_holders", "files_with", "keys_of", "secrets_of", "shown_by", "talkative"]


def talkative(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, file: Path, more_sinks: str = "") -> Path:
    """Return a folder of profiles whose drivers are on a path of the test."""
    site = sandbox.root / "site"
    info = site / "talkative-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: talkative\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[heron.statemgr]\ntalkative = talkative_drivers:TalkativeStateManager\n"
        "[heron.metricsink]\ntalkative = talkative_drivers:TalkativeSink\n",
        encoding="utf-8",
    )
    (site / "talkative_drivers.py").symlink_to(Path(__file__).parent / "talkative" / "talkative_drivers.py")
    monkeypatch.setenv("PYTHONPATH", str(site))
    profile = """
        extends: local
        statemgr: {driver: talkative, root: ~/.heron/state, password: "${env:STATE_PASSWORD}"}
        metricsink: [{driver: talkative, directory: "${run:logs}", password: "${file:FILE}"}MORE]
    """
    profiles = sandbox.root / "profiles"
    profiles.mkdir()
    (profiles / "local.yaml").write_text(
        textwrap.dedent(profile).replace("FILE", str(file)).replace("MORE", more_sinks), encoding="utf-8"
    )
    return profiles


def keys_of(state: StateManager, topology: str) -> TopologyKeys:
    """The keys of a running topology."""
    node = state.get(NodeKind.KEYS, topology)
    assert node is not None
    return decode_keys(node.value, topology)


def secrets_of(cluster: OnCluster, topology: str) -> list[str]:
    """The passwords of a shipped profile (`shipped_profile`), and the keys of a topology that runs with it."""
    sandbox = cluster.sandbox
    profile = json.loads((sandbox.home / ".heron" / "profiles" / f"{cluster.profile}.yaml").read_text("utf-8"))
    names = {"hosts": "HOSTS", "username": "USER", "password": "PASSWORD"}
    options = {option: sandbox.environ[f"HERON_ZOOKEEPER_{name}"] for option, name in names.items()}
    root = profile["statemgr"]["root"]
    with closing(ZookeeperStateManager.open({**options, "root": root, "lock_dir": str(sandbox.root)})) as state:
        keys = keys_of(state, topology)
    mine = [pair.secret for pair in (keys.server, keys.member, keys.control, keys.reader)]
    return [options["password"], sandbox.environ["E2E_STORE_PASSWORD"], *mine]


def files_with(secrets: list[str], root: Path) -> list[Path]:
    """The files below a folder that contain any of these texts, also compressed."""
    found = []
    for path in root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            with suppress(zlib.error):
                data += zlib.decompress(data)
            text = data.decode(errors="replace")
            found += [path] if any(secret in text for secret in secrets) else []
    return found


def check_holders(secrets: list[str], root: Path, names: set[str]) -> None:
    """Check that only files of these names (numbers are N) contain it, and that only their owner can read them."""
    holders = files_with(secrets, root)
    found = {re.sub(r"[0-9]+", "N", path.name) for path in holders}
    assert found == names, found ^ names
    for path in holders:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700, path


def shown_by(secrets: list[str], processes: Iterable[psutil.Process]) -> list[str]:
    """The processes whose command line or environment contains any of these texts."""
    found = []
    for process in processes:
        for place in ("cmdline", "environ"):
            with suppress(OSError):  # it has ended
                shown = Path(f"/proc/{process.pid}/{place}").read_bytes().decode(errors="replace")
                found += [f"{place} of {process}"] if any(secret in shown for secret in secrets) else []
    return found
