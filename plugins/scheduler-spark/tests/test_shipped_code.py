"""Which of a worker's paths are of code that was brought there."""

from __future__ import annotations

from pathlib import Path

from heron_scheduler_spark.shipped_code import code_names, shipped_code


def test_archives_and_the_folders_of_modules_are_found_wherever_spark_puts_them(tmp_path: Path) -> None:
    """Next to each other, or as YARN does it; what else is on the path is not the container's."""
    folder, other = tmp_path / "__pyfiles__", tmp_path / "pyspark"
    folder.mkdir()
    other.mkdir()
    (folder / "alone.py").touch()
    packed = str(tmp_path / "packed.zip")
    names = code_names(["/here/alone.py", "hdfs://n/lib/packed.zip#x"])
    assert names == ("alone.py", "packed.zip")
    assert shipped_code(names, [str(other), str(folder), packed, ""]) == [str(folder), packed]
    assert shipped_code((), [str(other), str(folder), packed]) == []
