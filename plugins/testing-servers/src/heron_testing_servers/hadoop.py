"""The common parts of Hadoop's servers: their Java command and their files of settings."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from heron_testing_servers.install import ServerNotInstalledError

__all__ = ["CLOSES_SOON", "HADOOP_VERSION", "hadoop_java", "write_hadoop_settings"]

HADOOP_VERSION = "3.5.0"

_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")

_LOGGING = """\
log4j.rootLogger=WARN,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""

# A client that closes a file asks again after this time, 400 by default, if the data node was slower to report.
CLOSES_SOON = {
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
    "dfs.client.block.write.locateFollowingBlock.retries": "10",
}

# The default retries of a client take minutes.
_SOON = {"ipc.client.connect.retry.interval": "200", "ipc.client.connect.max.retries": "100"}


def hadoop_java(folder: Path, libraries: Path) -> list[str]:
    """Return the start command of a server in `folder`, without the name of its class.

    Raises:
        ServerNotInstalledError: when there is no ``java`` on the PATH.
    """
    java = shutil.which("java")
    if java is None:
        msg = "there is no `java` on the PATH; install a JRE of 11 or newer"
        raise ServerNotInstalledError(msg)
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    return [java, *_JAVA, f"-Djava.io.tmpdir={folder / 'tmp'}", "-cp", f"{folder / 'conf'}:{libraries}/*"]


def write_hadoop_settings(conf: Path, core: Mapping[str, str], **sites: Mapping[str, str]) -> None:
    """Write ``core-site.xml`` and one file for each of `sites`, whose names have ``_`` in place of ``-``."""
    conf.mkdir(parents=True, exist_ok=True)
    for name, settings in {"core_site": {**core, **_SOON}, **sites}.items():
        (conf / f"{name.replace('_', '-')}.xml").write_text(_xml(settings), encoding="utf-8")
    (conf / "log4j.properties").write_text(_LOGGING, encoding="ascii")


def _xml(settings: Mapping[str, str]) -> str:
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>\n"])
