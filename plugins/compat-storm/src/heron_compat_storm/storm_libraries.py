"""Where Storm's own jars are. A topology's jar does not bring them, because a cluster of Storm has them.

They travel with the topology, so no container needs Storm.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from heron.errors import ConfigError
from heron_compat_storm.jar_file import JarFile

__all__ = ["LIBRARIES", "storm_libraries"]

LIBRARIES = "HERON_STORM_LIB"
"""The environment variable that names the folder of Storm's jars."""

_HOME, _WORKER = "STORM_HOME", "lib-worker"
_SUBMITTER = "org/apache/storm/StormSubmitter.class"
_MAVEN = "mvn dependency:copy-dependencies -DincludeScope=provided -DoutputDirectory=storm-lib"
_REMEDY = (
    f"run `{_MAVEN}` beside the pom.xml of the topology, which depends on org.apache.storm:storm-client 2.x with scope "
    f"provided, then set {LIBRARIES}=storm-lib"
)


def storm_libraries(jar: Path, content: JarFile, environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return Storm's jars, in the order of the class path; none if the topology's jar itself brings Storm.

    Raises:
        ConfigError: when they are not found; says where they were looked for, and how to get them.
    """
    if content.has_storm:
        return ()
    folder, source = _folder(environment)
    if folder is None:
        old = "; it brings Storm before 1.0, whose packages were backtype.storm" if content.is_for_old_storm else ""
        msg = f"{jar}: does not bring Storm's classes, and neither {LIBRARIES} nor {_HOME} is set{old}; {_REMEDY}"
        raise ConfigError(msg)
    found = tuple(sorted(each for each in folder.glob("*.jar") if each.is_file())) if folder.is_dir() else ()
    if not any(_has_submitter(each) for each in found):
        what = "has no jar with org.apache.storm.StormSubmitter" if folder.is_dir() else "is no folder"
        msg = f"{jar}: {source}={folder} {what}; {_REMEDY}"
        raise ConfigError(msg)
    return found


def _folder(environment: Mapping[str, str]) -> tuple[Path | None, str]:
    if given := environment.get(LIBRARIES):
        return Path(given).expanduser().absolute(), LIBRARIES
    if home := environment.get(_HOME):
        return Path(home).expanduser().absolute() / _WORKER, f"{_HOME}/{_WORKER}"
    return None, ""


def _has_submitter(jar: Path) -> bool:
    if "storm" not in jar.name:
        return False
    try:
        with zipfile.ZipFile(jar) as archive:
            return _SUBMITTER in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
