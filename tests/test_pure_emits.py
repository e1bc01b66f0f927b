"""The engine is right without the compiled emit, which all other tests use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.matrix
def test_instances_are_right_without_it() -> None:
    """Users who do not install it have the generated emit."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "heron-core/tests/instance"]
    ran = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"HERON_PURE": "1"}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
