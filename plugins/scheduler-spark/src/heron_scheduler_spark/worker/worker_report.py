"""Checks of a worker before a container starts there, in a separate task or in that of the container."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterable, Iterator

import msgspec

from heron.driver_kit.core_version import core_version
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.loading import open_driver
from heron.errors import HeronError, SchedulerError
from heron.spi.checkpoint import CheckpointStore
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind
from heron.spi.uploader import Uploader
from heron_scheduler_spark.settings.redacted_spec import resolve_driver

__all__ = ["Question", "check_core", "report"]

_ANSWER_S = 5.0


class Question(msgspec.Struct, frozen=True):
    """What a worker must check: its version of heron-core, a connection to the driver, and drivers of the profile.

    The drivers in `others` have references in place of secrets.
    """

    core: str
    driver: tuple[str, int]
    others: tuple[dict[str, object], ...] = ()


def report(questions: Iterable[str]) -> Iterator[str]:
    """Answer a question in JSON with one line for people; Spark calls it on the worker.

    Raises:
        SchedulerError: when a check fails; names this machine.
    """
    for written in questions:
        question = msgspec.json.decode(written, type=Question)
        check_core(question.core)
        _reach_driver(question.driver)
        used = [_use(each) for each in question.others]
        does = f", which has the use of {', '.join(used)}" if used else ""
        yield f"Python {platform.python_version()} on {os.uname().nodename}{does}"


def _reach_driver(address: tuple[str, int]) -> None:
    try:
        socket.create_connection(address, _ANSWER_S).close()
    except OSError as error:
        msg = (
            f"{os.uname().nodename} does not reach the Spark driver at {address[0]}:{address[1]}: "
            f"{error.strerror or error}; open the port, or set scheduler.driver_host to an address that workers reach"
        )
        raise SchedulerError(msg) from error


def _use(described: dict[str, object]) -> str:
    """Open the driver with the secrets of this machine, and query its server without changing anything.

    A sink is not opened: a sink that listens could take the port of a topology that runs here.
    """
    try:
        ref = msgspec.convert(resolve_driver(described), DriverRef)
        if ref.family == "statemgr":
            statemgr = open_statemgr(ref)
            try:
                statemgr.list(NodeKind.EXECUTION_STATE)
            finally:
                statemgr.close()
        elif ref.family == "uploader":
            open_driver(ref, Uploader).check(_ANSWER_S)
        elif ref.family == "checkpoint":
            open_driver(ref, CheckpointStore).check(_ANSWER_S)
    except HeronError as error:
        msg = f"on {os.uname().nodename}: {described['family']} driver {described['name']!r}: {error}"
        raise SchedulerError(msg) from error
    return f"{ref.family} {ref.name}"


def check_core(wanted: str) -> None:
    """Raises SchedulerError when this machine has another heron-core than the command."""
    if core_version() != wanted:
        msg = (
            f"{os.uname().nodename} has heron-core {core_version()}, and the command {wanted}; install the same "
            "version on the workers, or ship it with scheduler.archives"
        )
        raise SchedulerError(msg)
