"""The addresses of YARN, from Hadoop's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_spark.settings.master import Cluster, find_master
from heron_scheduler_spark.settings.options import SparkOptions

_PREFIX = "yarn.resourcemanager"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)


def written(folder: Path, **settings: str) -> SparkOptions:
    """Return options that name a folder with these settings; ``_`` in their names means a dot."""
    rows = "".join(
        f"<property><name>{_PREFIX}.{name.replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    (folder / "yarn-site.xml").write_text(f"<configuration>{rows}</configuration>", encoding="utf-8")
    return SparkOptions(master="yarn", hadoop_conf_dir=str(folder))


def test_the_address_of_yarn_is_in_its_configuration(tmp_path: Path) -> None:
    """It decides the address of the driver, and an absent resource manager is reported."""
    master = find_master(written(tmp_path, hostname="rm.example.org", address="rm.example.org:18032"))
    assert (master.cluster, master.addresses) == (Cluster.YARN, (("rm.example.org", 18032),))


def test_a_host_without_a_port_has_the_default_port(tmp_path: Path) -> None:
    """As in Hadoop."""
    assert find_master(written(tmp_path, hostname="rm.example.org")).addresses == (("rm.example.org", 8032),)


def test_several_resource_managers_have_several_addresses(tmp_path: Path) -> None:
    """Each of them may lead."""
    named = {"ha.rm-ids": "a,b", "hostname_a": "one.example.org", "address_b": "two.example.org:9032"}
    master = find_master(written(tmp_path, **named))
    assert master.addresses == (("one.example.org", 8032), ("two.example.org", 9032))


def test_the_environment_names_the_folder_if_the_profile_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Spark."""
    written(tmp_path, hostname="rm.example.org")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert find_master(SparkOptions(master="yarn")).addresses == (("rm.example.org", 8032),)


def test_yarn_without_a_configuration_is_refused() -> None:
    """Spark would report it only after its JVM has started."""
    with pytest.raises(SchedulerError, match=r"scheduler\.hadoop_conf_dir: neither this key nor HADOOP_CONF_DIR"):
        find_master(SparkOptions(master="yarn"))


@pytest.mark.parametrize("text", [None, "<configuration>"])
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, text: str | None) -> None:
    """The message has the folder and the reason."""
    if text is not None:
        (tmp_path / "yarn-site.xml").write_text(text, encoding="utf-8")
    with pytest.raises(SchedulerError, match=rf"{tmp_path} has no yarn-site\.xml that can be read: "):
        find_master(SparkOptions(master="yarn", hadoop_conf_dir=str(tmp_path)))


def test_other_masters_need_no_hadoop_configuration() -> None:
    """Only YARN reads it."""
    assert find_master(SparkOptions(master="spark://host:7077")).addresses == (("host", 7077),)
