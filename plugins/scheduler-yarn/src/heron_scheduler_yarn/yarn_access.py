"""Finds YARN and HDFS where Hadoop's own tools look: in the files of ``HADOOP_CONF_DIR``."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from heron.errors import SchedulerError
from heron_hdfs_kit.place import HdfsPlace
from heron_scheduler_yarn.options import YarnOptions

__all__ = ["YarnAccess", "find_access"]

_MANAGER, _NODE = "yarn.resourcemanager.webapp", "dfs.namenode"


@dataclass(frozen=True, slots=True)
class YarnAccess:
    """The web addresses of the resource managers, the folder of the jobs in HDFS, and the user."""

    addresses: tuple[str, ...]
    files: HdfsPlace
    user: str


def find_access(options: YarnOptions, environment: Mapping[str, str]) -> YarnAccess:
    """Return the access of a profile; Hadoop's files and the environment fill what the profile leaves empty.

    Raises:
        SchedulerError: when an address is missing, or a file cannot be read.
    """
    named = options.conf or environment.get("HADOOP_CONF_DIR", "")
    conf = Path(named).expanduser() if named else None
    user = options.user or environment.get("HADOOP_USER_NAME") or getpass.getuser()
    addresses = options.address or ";".join(_addresses(conf, "yarn-site.xml", _MANAGER, "address", "https.address"))
    names = options.hdfs or ";".join(_addresses(conf, "hdfs-site.xml", _NODE, "http-address", "https-address"))
    for option, found, key in (
        ("address", addresses, f"{_MANAGER}.address in yarn-site.xml"),
        ("hdfs", names, f"{_NODE}.http-address in hdfs-site.xml"),
    ):
        if not found:
            where = f"the folder {conf} has no {key}" if conf else "HADOOP_CONF_DIR is not set"
            msg = f"scheduler.{option} is empty, and {where}; set one of them"
            raise SchedulerError(msg)
    root = options.root or f"/user/{user}/.heron/yarn"
    return YarnAccess(
        tuple(each.rstrip("/") for each in addresses.split(";")), HdfsPlace(names, root, user, options.token), user
    )


def _addresses(conf: Path | None, file: str, prefix: str, *keys: str) -> list[str]:
    """Return the URLs that a file of Hadoop has below `prefix`, also those of several servers (``KEY.NAME``)."""
    if conf is None or not (conf / file).exists():
        return []
    try:
        root = ET.parse(conf / file).getroot()  # noqa: S314  # a file of the administrator
    except (OSError, ET.ParseError) as error:
        msg = f"{conf / file} cannot be read: {error}; correct it, or set scheduler.conf to another folder"
        raise SchedulerError(msg) from error
    found = {str(each.findtext("name")).strip(): (each.findtext("value") or "").strip() for each in root}
    return [
        f"{'https' if 'https' in key else 'http'}://{value}"
        for key in (f"{prefix}.{each}" for each in keys)
        for name, value in sorted(found.items())
        if (name == key or name.startswith(f"{key}.")) and value
    ]
