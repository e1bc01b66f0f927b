"""Where the driver finds YARN and HDFS."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_yarn.options import YarnOptions
from heron_scheduler_yarn.yarn_access import find_access


def _conf(folder: Path, **files: dict[str, str]) -> Path:
    for name, values in files.items():
        properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items())
        (folder / f"{name}-site.xml").write_text(f"<configuration>{properties}</configuration>")
    return folder


def test_files_of_hadoop_and_the_environment_are_enough(tmp_path: Path) -> None:
    """Two resource managers and two name nodes, as an administrator configures them."""
    conf = _conf(
        tmp_path,
        yarn={
            "yarn.resourcemanager.webapp.address.rm1": "a:8088",
            "yarn.resourcemanager.webapp.address.rm2": "b:8088",
            "yarn.resourcemanager.address.rm1": "a:8032",
        },
        hdfs={"dfs.namenode.http-address.ns.nn1": "c:9870", "dfs.namenode.http-address.ns.nn2": "d:9870"},
    )
    access = find_access(YarnOptions(), {"HADOOP_CONF_DIR": str(conf), "HADOOP_USER_NAME": "ann"})
    assert access.addresses == ("http://a:8088", "http://b:8088")
    assert access.files.url == "http://c:9870;http://d:9870"
    assert (access.user, access.files.user, access.files.root) == ("ann", "ann", "/user/ann/.heron/yarn")


def test_the_profile_wins(tmp_path: Path) -> None:
    """Its addresses, user and folder are used as they are."""
    conf = _conf(tmp_path, yarn={"yarn.resourcemanager.webapp.address": "a:8088"})
    options = YarnOptions(address="http://x:1/", hdfs="http://y:2", user="bob", root="/jobs", conf=str(conf))
    access = find_access(options, {"HADOOP_USER_NAME": "ann"})
    assert (access.addresses, access.files.url) == (("http://x:1",), "http://y:2")
    assert (access.user, access.files.root) == ("bob", "/jobs")


def test_a_missing_address_names_option_and_file(tmp_path: Path) -> None:
    """Both places where it can be set."""
    with pytest.raises(SchedulerError, match=r"scheduler\.address is empty, and HADOOP_CONF_DIR is not set"):
        find_access(YarnOptions(), {})
    conf = _conf(tmp_path, yarn={"yarn.resourcemanager.webapp.address": "a:8088"})
    with pytest.raises(SchedulerError, match=r"has no dfs\.namenode\.http-address in hdfs-site\.xml"):
        find_access(YarnOptions(), {"HADOOP_CONF_DIR": str(conf)})


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """The remedy is another folder."""
    (tmp_path / "yarn-site.xml").write_text("<configuration>")
    with pytest.raises(SchedulerError, match=r"yarn-site\.xml cannot be read.*scheduler\.conf"):
        find_access(YarnOptions(conf=str(tmp_path)), {})
