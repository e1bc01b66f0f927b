"""Which paths of a worker have code that Spark copied there."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_spark.settings.shipped_code import check_code, code_names, shipped_code


def test_archives_and_the_folders_of_modules_are_found_wherever_spark_puts_them(tmp_path: Path) -> None:
    """Standalone workers and YARN use different folders; other paths are not for the container."""
    folder, other = tmp_path / "__pyfiles__", tmp_path / "pyspark"
    folder.mkdir()
    other.mkdir()
    (folder / "alone.py").touch()
    packed = str(tmp_path / "packed.zip")
    names = code_names(["/here/alone.py", "hdfs://n/lib/packed.zip#x"])
    assert names == ("alone.py", "packed.zip")
    assert shipped_code(names, [str(other), str(folder), packed, ""]) == [str(folder), packed]
    assert shipped_code((), [str(other), str(folder), packed]) == []


def test_a_file_that_is_not_here_is_named_before_anything_starts(tmp_path: Path) -> None:
    """Spark would report only the path, after its JVM has started; only Spark can check remote paths."""
    there = tmp_path / "env.tar.gz"
    there.touch()
    check_code("archives", [f"{there}#env", f"file://{there}", "hdfs://n/env.tar.gz", "s3a://b/env.zip#env"])
    with pytest.raises(SchedulerError, match=r"scheduler\.archives: there is no file .*absent\.zip"):
        check_code("archives", [f"{tmp_path}/absent.zip#env"])
