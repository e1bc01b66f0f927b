"""The Java that Spark would run on is checked before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heron.errors import UsageError
from heron_spark_kit.java import check_java


def java(folder: Path, output: str) -> None:
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize("output", ['openjdk version "11.0.2"', 'java version "1.8.0_401"', "no version at all"])
def test_a_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """Spark itself would report only a class file version."""
    java(tmp_path, output)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(UsageError, match=r"version 17 or newer.*JAVA_HOME"):
        check_java()


def test_a_missing_java_is_reported_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the version to install."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"no `java` on the PATH.*install a JRE of version 17"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match=r"JAVA_HOME points to .*gone"):
        check_java()


def test_a_java_that_is_new_enough_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAVA_HOME has precedence."""
    (tmp_path / "bin").mkdir()
    java(tmp_path / "bin", 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == 21


@pytest.mark.parametrize(("hadoop", "runs"), [("3.4.1", False), ("3.5.0", True)])
def test_a_java_that_is_too_new_for_this_pyspark_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hadoop: str, runs: bool
) -> None:
    """Spark itself reports "getSubject is not supported"; later releases of pyspark run on it."""
    (tmp_path / "bin").mkdir()
    java(tmp_path / "bin", 'openjdk version "25.0.1" 2025-10-21')
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"hadoop-client-api-{hadoop}.jar").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    if runs:
        assert check_java() == 25
    else:
        with pytest.raises(UsageError, match=r"is Java 25, which the Hadoop 3\.4\.1 .* version 17 or 21"):
            check_java()
