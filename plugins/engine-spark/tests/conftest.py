"""A Java for tests that start none."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def some_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `java` that only knows its version: the engines ask for it when they compile."""
    folder = tmp_path / "java" / "bin"
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.2\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder.parent))
