"""The root of spouts and bolts."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

from heron.author_text import class_name
from heron.errors import EmitError, TopologyError, UsageError
from heron_compat_streamparse.hosting.author import Host
from heron_compat_streamparse.hosting.tuples import Tuple
from heron_compat_streamparse.specs.spec import ComponentSpec, Outputs, Par

__all__ = ["ROW_TYPES", "Component", "StormHandler"]

_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.ERROR,
}
ROW_TYPES = (list, tuple)
"""The types of the values of an emit."""
_MESSAGES = logging.getLogger("pystorm.log")


class Component:
    """The methods of spouts and bolts.

    Attributes:
        outputs: the declared outputs: field names of the default stream, and `Stream` objects.
        par: the number of tasks, or this number by environment.
        config: the component's own configuration.
        exit_on_exception: without effect: after an exception the component goes on, unless
            ``topology.on.error`` is ``stop``.
    """

    outputs: ClassVar[Outputs | None] = None
    par: ClassVar[Par] = 1
    config: ClassVar[Mapping[str, object] | None] = None
    exit_on_exception: bool = True

    topology_name: str
    task_id: int
    component_name: str
    debug: bool
    storm_conf: dict[str, Any]
    context: dict[str, Any]
    logger: logging.Logger
    _host: Host

    def __init__(
        self,
        input_stream: object = None,
        output_stream: object = None,
        rdb_signal: object = None,
        serializer: object = "json",
    ) -> None:
        if input_stream is not None or output_stream is not None:
            msg = f"{class_name(self)}: an instance gives no streams; leave out input_stream and output_stream"
            raise UsageError(msg)
        self.pid = os.getpid()
        self.serializer = serializer

    @classmethod
    def spec(cls, *args: Any, **kwargs: Any) -> ComponentSpec:  # noqa: ANN401  # each subclass has arguments of its own
        """Refuse.

        Raises:
            TopologyError: always; `Bolt` and `Spout` have specs.
        """
        msg = f"class {cls.__qualname__}: it is neither a bolt nor a spout; derive it from Bolt or Spout"
        raise TopologyError(msg)

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Prepare the task. Called once, before the other methods.

        Args:
            storm_conf: the configuration of the topology, overridden by the component's own.
            context: the place of the task in the topology, with the keys of Storm's multilang protocol.
        """

    def log(self, message: object, level: str | None = None) -> None:
        """Log a message, whatever the level of `logger` is; an unknown level is ``info``."""
        _MESSAGES.log(_LEVELS.get(level or "info", logging.INFO), "%s", message, stacklevel=2)

    def report_metric(self, name: str, value: object) -> None:
        """Report a value of a metric: a number is the newest value of a gauge, None adds one to a count."""
        self._host.set_metric(name, value)

    def raise_exception(self, exception: Exception, tup: object = None) -> None:
        """Show and count an exception, and go on. It fails no tuple."""
        self._host.report_error(exception)

    @staticmethod
    def is_heartbeat(tup: Tuple) -> bool:
        """Whether a tuple is a heartbeat of Storm; there is none here."""
        return tup.task == -1 and tup.stream == "__heartbeat"

    def _attach(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Set the attributes that pystorm sets after the handshake."""
        self.storm_conf, self.context = storm_conf, context
        self.topology_name = str(storm_conf.get("topology.name", ""))
        self.task_id, self.component_name = context["taskid"], context["componentid"]
        self.debug = bool(storm_conf.get("topology.debug", False))
        self.logger = logging.getLogger(f"pystorm.component.{self.component_name}")
        level = str(storm_conf.get("pystorm.log.level", "info")).lower()
        self.logger.setLevel(logging.DEBUG if self.debug else _LEVELS.get(level, logging.INFO))

    def _refuse_values(self, values: object) -> NoReturn:
        msg = f"emit of a {class_name(values)}, not a list or tuple of values; emit [value, ...]"
        raise EmitError(msg)


class StormHandler(logging.Handler):
    """Exists for programs that add it to their loggers: an instance logs all records already."""

    def __init__(self, serializer: object = None) -> None:
        super().__init__()

    def emit(self, record: logging.LogRecord) -> None:
        """Do nothing, as the record is logged without this handler."""
