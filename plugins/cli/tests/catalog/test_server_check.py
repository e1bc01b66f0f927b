"""Asking the server of a driver; a scheduler receives the drivers that containers need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import pytest

from heron.errors import SchedulerError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, Job, JobLink, JobStatus, Scheduler, SchedulerState
from heron_cli.catalog.plugin_check import ask_server

STATE = DriverRef("statemgr", "zookeeper", "no.such.module:Driver")


class Near(Scheduler):
    """A scheduler of this machine without jobs."""

    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        del options
        return cls()

    def check(self, timeout_s: float) -> str:
        return f"asked for {timeout_s:g} s"

    def schedule(self, job: Job) -> None:
        raise SchedulerError(job.topology)

    def kill(self, topology: str, topology_id: str = "") -> None:
        raise SchedulerError(topology, topology_id)

    def restart(self, topology: str, container_id: int) -> None:
        raise SchedulerError(topology, container_id)

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        raise SchedulerError(topology, add, remove)

    def status(self, topology: str) -> JobStatus:
        return JobStatus(SchedulerState.ABSENT, (), topology)

    def links(self, topology: str) -> tuple[JobLink, ...]:
        return (JobLink(topology, ""),)


class Far(Near):
    """A scheduler of other machines."""

    def check_places(self, others: Sequence[DriverRef], timeout_s: float) -> str:
        if timeout_s < 1:
            message = f"no place reaches {others[0].name}"
            raise SchedulerError(message)
        return f"{self.check(timeout_s)}, with {', '.join(each.name for each in others)}"


def ref(of: type[Scheduler]) -> DriverRef:
    return DriverRef("scheduler", of.__name__.lower(), f"{of.__module__}:{of.__name__}")


def test_a_scheduler_of_other_machines_checks_from_there() -> None:
    """The command may reach a server that containers cannot reach."""
    assert ask_server(ref(Far), 5.0, (STATE,)) == "asked for 5 s, with zookeeper"
    with pytest.raises(SchedulerError, match="no place reaches zookeeper"):
        ask_server(ref(Far), 0.5, (STATE,))


def test_other_drivers_are_checked_from_the_command() -> None:
    """This is enough when containers run on this machine, and `plugins check` passes no other drivers."""
    assert ask_server(ref(Near), 5.0, (STATE,)) == "asked for 5 s"
    assert ask_server(ref(Far), 5.0) == "asked for 5 s"
