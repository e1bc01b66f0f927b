"""The Java that Spark runs on: found as Spark finds it, and checked before anything starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from heron.errors import UsageError

__all__ = ["check_java"]

_NEEDED = 17  # Spark 4
_NO_SUBJECTS = 23  # Hadoop before 3.5 asks Java's subjects for the user, and Java 23 disabled them
_HADOOP_WITHOUT_SUBJECTS = (3, 5, 0)
_HADOOP = re.compile(r"-(\d+)\.(\d+)\.(\d+)\.jar$")
_ANSWER_S = 10.0
_VERSION = re.compile(r'version "(?:1\.)?(?P<major>\d+)')


def check_java() -> int:
    """Return the major version of the Java that Spark would use.

    Raises:
        UsageError: when it is missing, does not run, or is too old or too new for this pyspark.
    """
    home = os.environ.get("JAVA_HOME", "")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        msg = f"there is no `java` on the PATH, and JAVA_HOME is not set; install a JRE of version {_NEEDED} or newer"
        raise UsageError(msg)
    try:
        ran = subprocess.run(
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=_ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        place = "JAVA_HOME points to" if home else "the PATH has"
        msg = f"{place} {java}, which does not run: {error}; install a JRE of version {_NEEDED} or newer"
        raise UsageError(msg) from error
    found = _VERSION.search(ran.stderr + ran.stdout)
    major = int(found["major"]) if found else 0
    if ran.returncode != 0 or major < _NEEDED:
        says = (ran.stderr or ran.stdout).strip().partition("\n")[0] or f"exit code {ran.returncode}"
        msg = f"{java} is not Java of version {_NEEDED} or newer, which Spark 4 needs: {says}; set JAVA_HOME to one"
        raise UsageError(msg)
    if major >= _NO_SUBJECTS and (hadoop := _hadoop()) < _HADOOP_WITHOUT_SUBJECTS:
        has = ".".join(map(str, hadoop))
        msg = (
            f"{java} is Java {major}, which the Hadoop {has} of this pyspark does not run on; set JAVA_HOME to a "
            f"Java of version {_NEEDED} or 21, or upgrade pyspark"
        )
        raise UsageError(msg)
    return major


def _hadoop() -> tuple[int, ...]:
    """Return the version of pyspark's Hadoop client; a recent version when it cannot be found."""
    for jar in Path(_find_spark_home(), "jars").glob("hadoop-client-api-*.jar"):
        if found := _HADOOP.search(jar.name):
            return tuple(map(int, found.groups()))
    return _HADOOP_WITHOUT_SUBJECTS
