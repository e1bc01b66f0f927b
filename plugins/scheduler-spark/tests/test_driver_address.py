"""Where the driver listens, and where workers look for it."""

from __future__ import annotations

from typing import cast

import pytest

from heron.errors import SchedulerError
from heron_scheduler_spark.application import Application
from heron_scheduler_spark.cluster_check import check_cluster
from heron_scheduler_spark.driver_address import DriverAddress, driver_address
from heron_scheduler_spark.master import Cluster, Master, parse_master
from heron_scheduler_spark.options import SparkOptions
from heron_scheduler_spark.reach import address_towards, check_network

LOCAL = parse_master("local")
ABROAD = "192.0.2.99"  # nobody's, see RFC 5737


def test_this_machine_is_found_where_the_master_is_reached_from() -> None:
    """Unless the profile says where."""
    assert driver_address(SparkOptions(), LOCAL) == DriverAddress("127.0.0.1", "127.0.0.1")
    assert driver_address(SparkOptions(driver_host="127.0.0.2"), LOCAL) == DriverAddress("127.0.0.2", "127.0.0.2")


@pytest.mark.parametrize("bind", ["0.0.0.0", "127.0.0.1"])  # noqa: S104
def test_an_address_that_is_translated_on_the_way_is_another_one_here(bind: str) -> None:
    """A machine behind a gateway, or a pod with a service before it."""
    options = SparkOptions(driver_host=ABROAD, driver_bind=bind)
    assert driver_address(options, LOCAL) == DriverAddress(ABROAD, bind)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (SparkOptions(driver_host=ABROAD), rf"scheduler\.driver_host: '{ABROAD}' is no address of .*driver_bind"),
        (SparkOptions(driver_host="h.invalid"), r"scheduler\.driver_host: 'h\.invalid' is no address of this machine"),
        (SparkOptions(driver_bind=ABROAD), rf"scheduler\.driver_bind: '{ABROAD}' is no address of this machine"),
    ],
)
def test_an_address_of_another_machine_is_refused_by_its_option(options: SparkOptions, said: str) -> None:
    """It was a typing error, or an address that is translated: only who wrote it knows."""
    with pytest.raises(SchedulerError, match=said):
        driver_address(options, LOCAL)


@pytest.mark.parametrize(
    "master",
    [
        parse_master("k8s://https://127.0.0.1:6443"),
        Master("yarn", Cluster.YARN, ((ABROAD, 8032),)),
        Master("yarn", Cluster.YARN, (("127.0.0.1", 8032), (ABROAD, 8032))),
    ],
)
def test_the_loopback_is_refused_where_workers_have_another_one(master: Master) -> None:
    """They would look for the driver in their own pod, or on their own machine."""
    with pytest.raises(SchedulerError, match=r"scheduler\.driver_host: workers of .* do not reach .* at 127\.0\.0\.1"):
        driver_address(SparkOptions(driver_host="127.0.0.1"), master)


@pytest.mark.parametrize("listening", ["", "lo", "localhost", "127.0.0.1", "::1"])
def test_containers_that_others_would_not_reach_are_refused(listening: str) -> None:
    """Before any is started: stream managers would look for each other on their own machines."""
    check_network(listening, ["127.0.0.1", "localhost"])
    with pytest.raises(SchedulerError, match=rf"heron\.network\.host: .* at {listening}, .* has '{ABROAD}'; set it"):
        check_network(listening, ["127.0.0.1", ABROAD])


def test_containers_on_a_yarn_elsewhere_do_not_listen_at_the_loopback() -> None:
    """It does not tell its nodes; where its managers are on other machines, so are they."""
    elsewhere = Master("yarn", Cluster.YARN, ((ABROAD, 8032),))
    with pytest.raises(SchedulerError, match=r"heron\.network\.host"):
        check_cluster(cast("Application", Silent()), elsewhere, (), "127.0.0.1")
    check_cluster(cast("Application", Silent()), elsewhere, (), ABROAD)
    for host in ("127.0.0.1", address_towards(elsewhere)):
        check_cluster(cast("Application", Silent()), Master("yarn", Cluster.YARN, ((host, 8032),)), (), "127.0.0.1")


class Silent:
    """An application whose YARN does not tell how much it gives."""

    def largest_container(self) -> None:
        return None


@pytest.mark.parametrize("listening", ["eth0", "0.0.0.0", ABROAD])  # noqa: S104
def test_containers_that_listen_elsewhere_are_where_the_operator_says(listening: str) -> None:
    """An interface that only the workers have cannot be looked up here."""
    check_network(listening, ["127.0.0.1", ABROAD])


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("k8s://https://api.example.org:6443", ("api.example.org", 6443)),
        ("k8s://https://api.example.org/k8s/clusters/c", ("api.example.org", 443)),
        ("k8s://http://127.0.0.1:8001", ("127.0.0.1", 8001)),
        ("k8s://http://proxy", ("proxy", 80)),
        ("k8s://[fd00::1]:6443", ("fd00::1", 6443)),
    ],
)
def test_kubernetes_is_where_its_name_says(written: str, address: tuple[str, int]) -> None:
    """So this machine's address is that from which it is reached, and one that is not there is said to be."""
    assert parse_master(written).addresses == (address,)
