"""Drivers that log their passwords, the keys of a topology, and the files that contain them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.ipc.keys import TopologyKeys
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.topology_keys import decode_keys

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["files_with", "keys_of", "talkative"]


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


def files_with(secrets: list[str], root: Path) -> list[Path]:
    """The files below a folder that contain any of these texts."""
    found = []
    for path in root.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode(errors="replace")
            found += [path] if any(secret in text for secret in secrets) else []
    return found
