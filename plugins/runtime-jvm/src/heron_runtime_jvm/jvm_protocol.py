"""What is the same for spouts and bolts in JVMs: the start of a child, its errors and its metrics."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from heron.api import AssignableMetrics, TopologyContext
from heron.errors import UsageError
from heron_runtime_jvm.class_path import expanded_class_path
from heron_runtime_jvm.compiled_classes import compiled_classes
from heron_runtime_jvm.frames import Frame, FrameDecoder, FrameKind, encoded
from heron_runtime_jvm.java_failure import JavaFailure
from heron_runtime_jvm.java_program import find_java
from heron_runtime_jvm.jvm_settings import JvmSettings
from heron_runtime_multilang.child_host import ChildHost
from heron_runtime_multilang.child_io import ChildIo
from heron_runtime_multilang.child_metrics import ChildMetrics
from heron_runtime_multilang.child_settings import ChildSettings
from heron_runtime_multilang.pid_folder import make_pid_folder

__all__ = ["UPDATE_S", "JvmProtocol", "java_child"]

UPDATE_S = 10.0
"""How long an update of the tasks waits for a call of the component. A longer call may emit to tasks that have left."""

_SOURCES = Path(__file__).parent / "java" / "heron" / "jvm"
_PERIOD_S = 10.0
_LOG_LEVEL = "-Dorg.apache.logging.log4j.level=INFO"  # without a configuration Log4j shows errors only


@dataclass(frozen=True, slots=True)
class _JavaSettings(ChildSettings):
    """A child whose class path is in its environment, because it would fill the messages about its command."""

    variable: str = ""

    def environment(self) -> dict[str, str]:
        return {**ChildSettings.environment(self), "CLASSPATH": self.variable}


def java_child(settings: JvmSettings, component: str) -> ChildSettings:
    """Return the command of a component: this machine's Java, and the classes of this distribution, compiled.

    Raises:
        JavaError: when there is no Java, it is too old, or the class path is wrong.
    """
    child = settings.child_settings()
    java = find_java(settings.java)
    class_path = expanded_class_path(settings.class_path, child.folder())
    own = compiled_classes("runtime", sorted(_SOURCES.glob("*.java")), class_path, java)
    command = (str(java.path), _LOG_LEVEL, *settings.java_options, "heron.jvm.Main", component)
    variable = os.pathsep.join(map(str, [own, *class_path]))
    stored = {name: getattr(child, name) for name in ChildSettings.__dataclass_fields__ if name != "command"}
    return replace(_JavaSettings(command, variable=variable), **stored)


class JvmProtocol:
    """The binary protocol with the children of one task. `starts` counts them; roots have the number of their child."""

    def __init__(self, setup: Callable[[], Mapping[str, object]], most_bytes: int, context: TopologyContext) -> None:
        self.heartbeat = encoded(FrameKind.PING)
        self.starts = 0
        self._setup = setup
        self._most_bytes = most_bytes
        self._context = context
        self._counts = ChildMetrics(context)
        self._gauges: dict[str, AssignableMetrics] = {}
        self._pid_folder: Path | None = None
        self._is_ready = False

    def begin(self) -> tuple[FrameDecoder, bytes]:
        """`ChildProtocol.begin`: the setup."""
        self.starts += 1
        self._is_ready = False
        self._pid_folder = make_pid_folder()
        setup = {**self._setup(), "first_root": self.starts << 40, "pid_folder": str(self._pid_folder)}
        return FrameDecoder(self._most_bytes), encoded(FrameKind.SETUP, setup)

    def is_ready(self, output: Frame) -> bool:
        """`ChildProtocol.is_ready`: the component has been opened."""
        return output[0] == FrameKind.READY

    def ended(self) -> None:
        """`ChildProtocol.ended`."""
        if self._pid_folder is not None:
            shutil.rmtree(self._pid_folder, ignore_errors=True)
            self._pid_folder = None

    def carry_out(self, output: Frame, io: ChildIo[Frame], host: ChildHost[Frame]) -> None:
        """`ChildProtocol.carry_out`; an unknown kind is a fault of the child.

        Raises:
            JavaFailure: when the component cannot be opened or prepared.
        """
        kind = output[0]
        if kind == FrameKind.ERROR:
            name, message, trace = (str(each) for each in output[1:4])
            failure = JavaFailure(name, message, trace, host.place)
            if not self._is_ready:
                raise failure
            host.user.report_error(failure)
        elif kind == FrameKind.READY:
            self._is_ready = True
        elif kind == FrameKind.METRICS:
            _, counts, gauges = output
            self._update(counts, gauges, io, host)
        elif kind != FrameKind.PONG:
            io.kill(f"it sent a frame of the kind {kind!r}, which is unknown here")

    def _update(self, counts: object, gauges: object, io: ChildIo[Frame], host: ChildHost[Frame]) -> None:
        if not isinstance(counts, dict) or not isinstance(gauges, dict):
            io.kill("it sent metrics that are no maps")
            return
        for name, value in counts.items():
            if problem := self._counts.update(name, value):
                host.user.report_error(host.error(f"sent metrics that cannot be used: {problem}", problem, io.pid))
        for name, value in gauges.items():
            gauge = self._gauges.get(name)
            if gauge is None:
                gauge = self._gauges[name] = AssignableMetrics(value)
                try:
                    self._context.register_metric(name, gauge, _PERIOD_S)
                except UsageError as error:
                    host.user.report_error(error)
            gauge.update(value)
