"""The scheduler contract on a real YARN of two nodes, with services over REST and HDFS."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest

from heron_scheduler_yarn.scheduler import YarnScheduler
from heron_testing.contracts.scheduler import FAKE_EXECUTOR, SchedulerContract
from heron_testing.faults import Fault, Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.yarn_services import YarnServices

pytestmark = pytest.mark.servers


@pytest.fixture
def relays(hdfs: HdfsServer, yarn_services: YarnServices) -> Iterator[tuple[Relay, Relay]]:
    """Connect the driver to the resource manager and to the name node, and can cut the connections."""
    urls = (yarn_services.url, hdfs.url)
    ports = [int(each.rpartition(":")[2]) for each in urls]
    relays = Relay(("127.0.0.1", ports[0])), Relay(("127.0.0.1", ports[1]))
    yield relays
    for each in relays:
        each.close()


class TestYarnScheduler(SchedulerContract):
    name = "yarn"
    driver_class = YarnScheduler
    uses_state = True

    @pytest.fixture
    def options(self, relays: tuple[Relay, Relay], yarn_services: YarnServices) -> Iterator[dict[str, object]]:
        manager, names = (f"http://{each.address[0]}:{each.address[1]}" for each in relays)
        yield {
            "address": manager,
            "hdfs": names,
            "root": "/heron/jobs",
            "python": sys.executable,
            "executor": [*FAKE_EXECUTOR],
            "stop_grace_s": 1.0,
            "start_s": 60.0,
            "manager_cpu": 1,
            "manager_memory_mb": 64,
            "executor_memory_mb": 64,
        }
        yarn_services.start()

    @pytest.fixture
    def faults(self, relays: tuple[Relay, Relay]) -> Faults:
        one, other = (relay_faults(each) for each in relays)
        return Faults(
            away=lambda: _both(one.away, other.away),
            silent=lambda: _both(one.silent, other.silent),
            answers_lost=lambda: _both(one.answers_lost, other.answers_lost),
        )


def _both(one: Fault | None, other: Fault | None) -> AbstractContextManager[None]:
    @contextmanager
    def both() -> Iterator[None]:
        with ExitStack() as stack:
            for each in (one, other):
                assert each is not None
                stack.enter_context(each())
            yield

    return both()
