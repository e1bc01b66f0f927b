"""A gateway with real sockets, whose stream manager and metrics manager the test plays."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.errors import MissingDriverError
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import Command, SessionOpened
from heron.ipc import control_pb2 as pb
from heron.ipc.endpoint import container_dir, registration_endpoint
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.socket import Channel, SocketContext
from heron.kernel.settings import EngineSettings
from heron.spi.inspected_task import InspectedTask
from heron.spi.inspector import TaskInspector
from heron.spi.task_memory import MemoryLook, TaskMemory
from heron.spi.task_profile import TaskProfile
from heron.spi.task_stacks import TaskStacks
from heron.spi.task_tuples import TaskTuples
from heron_testing.builders import physical_plan, spout, topology
from parts import instance_spec
from parts.watched_machine import WatchedMachine

__all__ = ["PLAN", "PatientInspector", "Site", "receive", "until"]

PLAN = physical_plan(topology(spout("spout")), {"spout": (7,)}, version=4)


class PatientInspector(TaskInspector):
    """Waits as long as it is asked to; each answer has the numbers of its question."""

    spi_version = 1
    task = InspectedTask()

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """There are no options."""
        del options
        return cls()

    def stacks(self, task: InspectedTask, stop: threading.Event) -> TaskStacks:
        """No thread."""
        del stop
        self.task = task
        return TaskStacks(*self._place(task), 1.0, ())

    def profile(self, task: InspectedTask, seconds: float, stop: threading.Event) -> TaskProfile:
        """No sample."""
        stop.wait(seconds)
        return TaskProfile(*self._place(task), 1.0, seconds, 0, (), ())

    def memory(self, task: InspectedTask, seconds: float, stop: threading.Event) -> TaskMemory:
        """No object."""
        if seconds < 0:
            msg = f"seconds: {seconds}"
            raise ValueError(msg)
        stop.wait(seconds)
        look = MemoryLook(1.0, 0.0, 0, 0, None, 0, 0, 0.0)
        return TaskMemory(*self._place(task), look, look, seconds, 0, (), (), (), ())

    def tuples(self, task: InspectedTask, wanted: int, seconds: float, stop: threading.Event) -> TaskTuples:
        """No tuple."""
        stop.wait(seconds)
        return TaskTuples(*self._place(task), 1.0, seconds, wanted, (), ())

    @staticmethod
    def _place(task: InspectedTask) -> tuple[str, str, int, int, int, int, str]:
        found = task.identity
        return (
            found.topology,
            found.component,
            found.task_id,
            found.container_id,
            found.incarnation,
            os.getpid(),
            "here",
        )


class Site:
    """A container with a gateway; the hub belongs to the stream manager.

    With a `refusal` there is no inspector; `inspectors` are those that were opened.
    """

    def __init__(self, long_call_s: float = 0.0, signals: Signals | None = None) -> None:
        self.refusal = ""
        self.inspectors: list[PatientInspector] = []
        self.run_dir = Path(tempfile.mkdtemp(prefix="hw"))
        container_dir(self.run_dir, 1).mkdir()
        spec = instance_spec("spout", 7, incarnation=2, run_dir=str(self.run_dir))
        settings = EngineSettings(link_window_bytes=4096, long_call_s=long_call_s)
        self.machine = WatchedMachine()
        self.gateway = Gateway(spec, settings, self._opened, self.machine)
        self.sockets = SocketContext(max_frame_bytes=-1)
        self.hub = self.sockets.hub(registration_endpoint(self.run_dir, 1))
        self.hellos: list[pb.InstanceHello] = []
        self.refusals: list[pb.Refused] = []
        self.client = b""
        self.gateway.start(signals)

    def _opened(self) -> TaskInspector:
        if self.refusal:
            raise MissingDriverError(self.refusal)
        self.inspectors.append(PatientInspector.open({}))
        return self.inspectors[-1]

    def hello(self, after: str = "") -> pb.InstanceHello:
        """The next hello whose endpoint is not `after`."""

        def look() -> bool:
            while (message := self.hub.receive()) is not None:
                self.client = message[0]
                envelope = parse_control(message[1])
                if body_of(envelope) == "refused":
                    self.refusals.append(envelope.refused)
                else:
                    self.hellos.append(envelope.instance_hello)
            return bool(self.hellos and self.hellos[-1].endpoint != after)

        until(look)
        return self.hellos[-1]

    def session(
        self,
        number: int,
        after: str = "",
        window_bytes: int = 4096,
        *,
        ended: bool = False,
        culprits: tuple[int, ...] = (),
    ) -> Channel:
        """Connects to the instance and welcomes it."""
        channel = self.sockets.channel_to(self.hello(after).endpoint)
        welcome = pb.InstanceWelcome(session=number, window_bytes=window_bytes, ended=ended, culprits=culprits)
        channel.send(control_frame(Envelope(instance_welcome=welcome), number))
        assert self.command() == SessionOpened(ended)
        return channel

    def command(self) -> Command:
        found: list[bytes | Command] = []

        def look() -> bool:
            item = self.gateway.data_in.get()
            found.extend([item] if item is not None else [])
            return bool(found)

        until(look)
        assert not isinstance(found[0], bytes)
        return found[0]

    def close(self) -> None:
        self.gateway.close(5)
        self.sockets.close()
        shutil.rmtree(self.run_dir)


def until(condition: Callable[[], object]) -> None:
    deadline_s, pause = monotonic_s() + 10, threading.Event()
    while not condition():
        assert monotonic_s() < deadline_s, "not in time"
        pause.wait(0.002)


def receive(channel: Channel) -> bytes:
    assert channel.wait(10), "nothing came"
    frame = channel.receive()
    assert frame is not None
    return frame
