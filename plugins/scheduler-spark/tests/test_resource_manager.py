"""Where YARN is, as Hadoop's files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_spark.master import Cluster
from heron_scheduler_spark.options import SparkOptions
from heron_scheduler_spark.resource_manager import find_master

_PREFIX = "yarn.resourcemanager"


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)


def written(folder: Path, **settings: str) -> SparkOptions:
    """Options that name a folder with these settings, in whose names ``_`` stands for a dot."""
    rows = "".join(
        f"<property><name>{_PREFIX}.{name.replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    (folder / "yarn-site.xml").write_text(f"<configuration>{rows}</configuration>", encoding="utf-8")
    return SparkOptions(master="yarn", hadoop_conf_dir=str(folder))


def test_its_address_is_that_of_the_configuration(tmp_path: Path) -> None:
    """Workers reach this machine from where the resource manager is reached, and a dead one is said to be."""
    master = find_master(written(tmp_path, hostname="rm.example.org", address="rm.example.org:18032"))
    assert (master.cluster, master.addresses) == (Cluster.YARN, (("rm.example.org", 18032),))


def test_a_host_alone_has_the_usual_port(tmp_path: Path) -> None:
    """As Hadoop takes it."""
    assert find_master(written(tmp_path, hostname="rm.example.org")).addresses == (("rm.example.org", 8032),)


def test_each_of_several_is_known(tmp_path: Path) -> None:
    """One of them answers, whichever leads."""
    named = {"ha.rm-ids": "a,b", "hostname_a": "one.example.org", "address_b": "two.example.org:9032"}
    master = find_master(written(tmp_path, **named))
    assert master.addresses == (("one.example.org", 8032), ("two.example.org", 9032))


def test_the_environment_is_asked_where_the_profile_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Spark does."""
    written(tmp_path, hostname="rm.example.org")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert find_master(SparkOptions(master="yarn")).addresses == (("rm.example.org", 8032),)


def test_yarn_without_a_configuration_is_refused() -> None:
    """Spark would complain of it after its JVM has started, in words of its own."""
    with pytest.raises(SchedulerError, match=r"scheduler\.hadoop_conf_dir: is not set, nor is HADOOP_CONF_DIR"):
        find_master(SparkOptions(master="yarn"))


@pytest.mark.parametrize("text", [None, "<configuration>"])
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, text: str | None) -> None:
    """With the folder, and the reason."""
    if text is not None:
        (tmp_path / "yarn-site.xml").write_text(text, encoding="utf-8")
    with pytest.raises(SchedulerError, match=rf"{tmp_path} has no yarn-site\.xml that can be read: "):
        find_master(SparkOptions(master="yarn", hadoop_conf_dir=str(tmp_path)))


def test_other_masters_need_none() -> None:
    """Hadoop is nothing to them."""
    assert find_master(SparkOptions(master="spark://host:7077")).addresses == (("host", 7077),)
