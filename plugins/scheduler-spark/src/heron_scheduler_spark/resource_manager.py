"""Where the resource manager of a YARN is, as Hadoop's configuration says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from heron.errors import SchedulerError
from heron_scheduler_spark.master import Cluster, Master, parse_master
from heron_scheduler_spark.options import SparkOptions

__all__ = ["enter_hadoop", "find_master"]

_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_FILE = "yarn-site.xml"
_PREFIX = "yarn.resourcemanager"
_PORT = 8032  # where nothing says another


def find_master(options: SparkOptions) -> Master:
    """The master that is asked for; with YARN, the addresses are those of its resource managers.

    Raises:
        SchedulerError: when there is no such form, or Hadoop's configuration is needed and not there.
    """
    master = parse_master(options.master)
    if master.cluster is not Cluster.YARN:
        return master
    folder = _folder(options)
    try:
        settings = _settings(Path(folder, _FILE))
    except (OSError, ElementTree.ParseError) as error:
        msg = f"scheduler.hadoop_conf_dir: {folder} has no {_FILE} that can be read: {error}"
        raise SchedulerError(msg) from error
    return replace(master, addresses=tuple(_addresses(settings)))


def enter_hadoop(options: SparkOptions) -> None:
    """Tells Spark of this process where the configuration is."""
    if options.hadoop_conf_dir:
        os.environ[_VARIABLES[0]] = os.path.expanduser(options.hadoop_conf_dir)


def _folder(options: SparkOptions) -> str:
    named = (options.hadoop_conf_dir, *(os.environ.get(each, "") for each in _VARIABLES))
    if not (found := next(filter(None, named), "")):
        msg = (
            f"scheduler.hadoop_conf_dir: is not set, nor is {_VARIABLES[0]} in the environment; "
            f"set it to the folder that has YARN's {_FILE}"
        )
        raise SchedulerError(msg)
    return os.path.expanduser(found)


def _settings(file: Path) -> Mapping[str, str]:
    root = ElementTree.fromstring(file.read_bytes())  # noqa: S314  # the user's own configuration
    return {each.findtext("name", ""): each.findtext("value", "").strip() for each in root.iter("property")}


def _addresses(settings: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """One, or one for each that is ready to take over."""
    ids = [each.strip() for each in settings.get(f"{_PREFIX}.ha.rm-ids", "").split(",")]
    for suffix in (f".{each}" if each else "" for each in ids):
        host = settings.get(f"{_PREFIX}.hostname{suffix}", "")
        written = settings.get(f"{_PREFIX}.address{suffix}") or f"{host}:{_PORT}"
        written = written.replace(f"${{{_PREFIX}.hostname}}", host)
        name, _, port = written.rpartition(":")
        if name and port.isdigit():
            yield name, int(port)
