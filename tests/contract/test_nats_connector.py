"""The connector of the tutorial passes its own tests, which start a real nats-server, as a third party's plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = {
    "connector-nats/README.md",
    "connector-nats/pyproject.toml",
    "connector-nats/src/heron_connector_nats/__init__.py",
    "connector-nats/src/heron_connector_nats/connection.py",
    "connector-nats/src/heron_connector_nats/py.typed",
    "connector-nats/src/heron_connector_nats/sink.py",
    "connector-nats/src/heron_connector_nats/source.py",
    "connector-nats/tests/counting.py",
    "connector-nats/tests/test_nats.py",
}
"""The files of the connector. `./dev verify` reads their names here."""
RUN_S = 600


@pytest.mark.matrix
def test_the_connector_of_the_tutorial_passes_its_tests() -> None:
    """In a process of its own, because its settings of pytest are its own."""
    place = ROOT / "examples" / "plugins" / "connector-nats"
    found = {
        path.relative_to(place.parent).as_posix()
        for path in place.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__py")) for part in path.relative_to(place).parts)
    }
    assert found == EXAMPLE
    environment = {**os.environ, "PYTHONPATH": str(place / "src")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "skipped" not in ran.stdout
