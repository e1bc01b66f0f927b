"""The address of the driver, the address of containers, and the addresses of masters."""

from __future__ import annotations

import pytest

from heron.errors import SchedulerError
from heron_scheduler_spark.application.cluster_check import check_cluster
from heron_scheduler_spark.settings.master import Cluster, Master, parse_master
from heron_scheduler_spark.settings.network import DriverAddress, address_towards, check_network, driver_address
from heron_scheduler_spark.settings.options import SparkOptions

LOCAL = parse_master("local")
ABROAD = "192.0.2.99"  # for documentation, see RFC 5737


def test_the_default_address_is_on_the_route_to_the_master() -> None:
    """An address in the profile takes precedence."""
    assert driver_address(SparkOptions(), LOCAL) == DriverAddress("127.0.0.1", "127.0.0.1")
    assert driver_address(SparkOptions(driver_host="127.0.0.2"), LOCAL) == DriverAddress("127.0.0.2", "127.0.0.2")


@pytest.mark.parametrize("bind", ["0.0.0.0", "127.0.0.1"])  # noqa: S104
def test_driver_bind_is_the_local_address_of_a_translated_one(bind: str) -> None:
    """For a machine behind a gateway, or a pod behind a service."""
    options = SparkOptions(driver_host=ABROAD, driver_bind=bind)
    assert driver_address(options, LOCAL) == DriverAddress(ABROAD, bind)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SparkOptions(driver_host=ABROAD), rf"scheduler\.driver_host: '{ABROAD}' is not an address of .*driver_bind"),
        (
            SparkOptions(driver_host="h.invalid"),
            r"scheduler\.driver_host: 'h\.invalid' is not an address of this machine",
        ),
        (SparkOptions(driver_bind=ABROAD), rf"scheduler\.driver_bind: '{ABROAD}' is not an address of this machine"),
    ],
)
def test_an_address_of_another_machine_is_refused_by_its_option(options: SparkOptions, message: str) -> None:
    """It may be a typing error or a translated address, so the message names the option."""
    with pytest.raises(SchedulerError, match=message):
        driver_address(options, LOCAL)


@pytest.mark.parametrize(
    "master",
    [
        parse_master("k8s://https://127.0.0.1:6443"),
        Master("yarn", Cluster.YARN, ((ABROAD, 8032),)),
        Master("yarn", Cluster.YARN, (("127.0.0.1", 8032), (ABROAD, 8032))),
    ],
)
def test_the_loopback_is_refused_if_workers_are_elsewhere(master: Master) -> None:
    """Workers would look for the driver in their own pod, or on their own machine."""
    with pytest.raises(SchedulerError, match=r"scheduler\.driver_host: workers of .* do not reach .* at 127\.0\.0\.1"):
        driver_address(SparkOptions(driver_host="127.0.0.1"), master)


@pytest.mark.parametrize("listening", ["", "lo", "localhost", "127.0.0.1", "::1"])
def test_containers_that_listen_at_the_loopback_of_several_machines_are_refused(listening: str) -> None:
    """Their stream managers would look for each other on their own machines."""
    check_network(listening, ["127.0.0.1", "localhost"])
    with pytest.raises(SchedulerError, match=rf"heron\.network\.host: .* at {listening}, .* has '{ABROAD}'; set it"):
        check_network(listening, ["127.0.0.1", ABROAD])


def test_containers_on_a_remote_yarn_do_not_listen_at_the_loopback() -> None:
    """YARN is not asked for its nodes: if its managers are on other machines, the nodes are too."""
    elsewhere = Master("yarn", Cluster.YARN, ((ABROAD, 8032),))
    with pytest.raises(SchedulerError, match=r"heron\.network\.host"):
        check_cluster(SilentYarn(), elsewhere, (), "127.0.0.1")
    check_cluster(SilentYarn(), elsewhere, (), ABROAD)
    for host in ("127.0.0.1", address_towards(elsewhere)):
        check_cluster(SilentYarn(), Master("yarn", Cluster.YARN, ((host, 8032),)), (), "127.0.0.1")


class SilentYarn:
    """A cluster that reports no sizes."""

    def workers(self, host: str, port: int) -> None:
        """Report nothing."""

    def largest_container(self) -> None:
        """Report nothing."""


@pytest.mark.parametrize("listening", ["eth0", "0.0.0.0", ABROAD])  # noqa: S104
def test_other_names_for_the_containers_address_are_accepted(listening: str) -> None:
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
def test_the_address_of_kubernetes_is_in_its_url(written: str, address: tuple[str, int]) -> None:
    """It decides the address of the driver, and an absent API server is reported."""
    assert parse_master(written).addresses == (address,)
