"""The Spark master that a profile names: the kind of its cluster, and its addresses.

The addresses of YARN's resource managers come from Hadoop's configuration.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from heron.errors import SchedulerError
from heron_scheduler_spark.settings.options import SparkOptions

__all__ = ["Cluster", "Master", "export_hadoop_conf", "find_master", "parse_master"]

_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?")  # the number of slots that a user writes is ignored
_STANDALONE = re.compile(r"spark://(?P<hosts>[^/,:\s]+:\d+(,[^/,:\s]+:\d+)*)")
_KUBERNETES = re.compile(r"k8s://(?P<scheme>https?://)?(?P<host>\[[^\]]+\]|[^/:\s]+)(:(?P<port>\d+))?(/\S*)?")
_FORMS = "known: local, spark://HOST:PORT, yarn, k8s://URL"

_HADOOP_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_YARN_FILE = "yarn-site.xml"
_YARN_PREFIX = "yarn.resourcemanager"
_YARN_PORT = 8032  # the default of Hadoop


class Cluster(enum.Enum):
    """The kind of a cluster: what gives executors to an application."""

    LOCAL = "local"
    STANDALONE = "standalone"
    YARN = "yarn"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True)
class Master:
    """A master; `addresses` are where it listens, as far as they are known."""

    url: str
    cluster: Cluster
    addresses: tuple[tuple[str, int], ...] = ()

    @property
    def here(self) -> bool:
        """Whether tasks run on this machine and see its files."""
        return self.cluster is Cluster.LOCAL

    @property
    def counts_heap_only(self) -> bool:
        """Whether the heap of a JVM is the only memory that the master manages."""
        return self.cluster is Cluster.STANDALONE

    @property
    def pods(self) -> bool:
        """Whether each worker has separate network addresses, including its own loopback."""
        return self.cluster is Cluster.KUBERNETES


def parse_master(written: str) -> Master:
    """Return the master with that URL.

    Raises:
        SchedulerError: when Spark has no such form; lists the known forms.
    """
    if _LOCAL.fullmatch(written):
        return Master("local", Cluster.LOCAL)
    if found := _STANDALONE.fullmatch(written):
        pairs = (each.rpartition(":") for each in found["hosts"].split(","))
        return Master(written, Cluster.STANDALONE, tuple((host, int(port)) for host, _, port in pairs))
    if written == "yarn":
        return Master(written, Cluster.YARN)
    if found := _KUBERNETES.fullmatch(written):
        port = int(found["port"] or (80 if found["scheme"] == "http://" else 443))
        return Master(written, Cluster.KUBERNETES, ((found["host"].strip("[]"), port),))
    msg = f"scheduler.master: {written!r} is not a Spark master; {_FORMS}"
    raise SchedulerError(msg)


def find_master(options: SparkOptions) -> Master:
    """Return the master of the options; for YARN, with the addresses of the resource managers.

    Raises:
        SchedulerError: when there is no such form, or YARN's configuration is missing.
    """
    master = parse_master(options.master)
    if master.cluster is not Cluster.YARN:
        return master
    folder = _hadoop_folder(options)
    try:
        settings = _yarn_settings(Path(folder, _YARN_FILE))
    except (OSError, ElementTree.ParseError) as error:
        msg = f"scheduler.hadoop_conf_dir: {folder} has no {_YARN_FILE} that can be read: {error}"
        raise SchedulerError(msg) from error
    return replace(master, addresses=tuple(_yarn_addresses(settings)))


def export_hadoop_conf(options: SparkOptions) -> None:
    """Set the environment variable by which Spark in this process finds Hadoop's configuration."""
    if options.hadoop_conf_dir:
        os.environ[_HADOOP_VARIABLES[0]] = os.path.expanduser(options.hadoop_conf_dir)


def _hadoop_folder(options: SparkOptions) -> str:
    named = (options.hadoop_conf_dir, *(os.environ.get(each, "") for each in _HADOOP_VARIABLES))
    if not (found := next(filter(None, named), "")):
        msg = (
            f"scheduler.hadoop_conf_dir: neither this key nor {_HADOOP_VARIABLES[0]} in the environment is set; "
            f"set one to the folder that has YARN's {_YARN_FILE}"
        )
        raise SchedulerError(msg)
    return os.path.expanduser(found)


def _yarn_settings(file: Path) -> Mapping[str, str]:
    root = ElementTree.fromstring(file.read_bytes())  # noqa: S314  # the user's own configuration
    return {each.findtext("name", ""): each.findtext("value", "").strip() for each in root.iter("property")}


def _yarn_addresses(settings: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the address of each resource manager: one, or several with high availability."""
    ids = [each.strip() for each in settings.get(f"{_YARN_PREFIX}.ha.rm-ids", "").split(",")]
    for suffix in (f".{each}" if each else "" for each in ids):
        host = settings.get(f"{_YARN_PREFIX}.hostname{suffix}", "")
        written = settings.get(f"{_YARN_PREFIX}.address{suffix}") or f"{host}:{_YARN_PORT}"
        written = written.replace(f"${{{_YARN_PREFIX}.hostname}}", host)
        name, _, port = written.rpartition(":")
        if name and port.isdigit():
            yield name, int(port)
