"""Where a collector listens, and its limits."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from heron.errors import ConfigError
from heron.spi.options import decode_options

__all__ = ["CONFIG_KEY", "ServiceOptions"]

CONFIG_KEY = "heron.connector.scribe"
"""The key of a spout's configuration that has the options."""

_Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]


class ServiceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `ScribeSpout` and `ScribeSource`.

    Attributes:
        ports: the port of each task, by its index in the component; of each partition, in a pipeline. ``(0,)`` is a
            free port for each of them, which `announce` makes known.
        host: the address to bind. ``"0.0.0.0"`` accepts clients of other machines.
        advertise: the host that `announce` names; by default `host`, or the name of the machine if that is
            ``"0.0.0.0"``.
        announce: a folder in which each task writes a file ``INDEX`` with ``HOST:PORT``, while it listens.
        partitions: the number of partitions of each category. Others have one.
        delimiter: ends the key at the begin of a message, which decides the partition; a message without it is its key.
        frame_bytes: the largest call. A larger one is refused when its length is known.
        batch_messages: the most messages of a call. More are answered TRY_LATER.
        pending_bytes: how much may wait for an answer, together. Then calls are answered TRY_LATER.
        connections: the most connections of a task. Another one takes the place of the one that has been idle the
            longest, if that is longer than `frame_s`.
        queue_s: how long a call may wait until its first message is emitted. Then it is answered TRY_LATER. At most
            once it does not apply, because calls have their answer.
        frame_s: how long a call may take to arrive.
        retry_s: effectively once, how long the task recognises a call again whose answer the client may have missed;
            from that answer on.
    """

    ports: Annotated[tuple[_Port, ...], msgspec.Meta(min_length=1)]
    host: str = "127.0.0.1"
    advertise: str = ""
    announce: str = ""
    partitions: dict[str, Annotated[int, msgspec.Meta(ge=1, le=65536)]] = {}
    delimiter: Annotated[str, msgspec.Meta(min_length=1)] = "\x01"
    frame_bytes: Annotated[int, msgspec.Meta(ge=1024, le=2**31 - 1)] = 16 * 1024 * 1024
    batch_messages: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 100_000
    pending_bytes: Annotated[int, msgspec.Meta(ge=65536)] = 64 * 1024 * 1024
    connections: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 1000
    queue_s: _Seconds = 1.0
    frame_s: _Seconds = 30.0
    retry_s: _Seconds = 600.0

    def __post_init__(self) -> None:
        if 0 in self.ports and (self.ports != (0,) or not self.announce):
            msg = "ports: 0 stands alone, as (0,), and needs the folder `announce`, where clients find the ports"
            raise ValueError(msg)
        if self.frame_bytes >= self.pending_bytes:
            msg = f"frame_bytes: {self.frame_bytes} bytes do not fit into pending_bytes, {self.pending_bytes} bytes"
            raise ValueError(msg)

    @classmethod
    def of(cls, given: object) -> ServiceOptions:
        """The checked options of a configuration, or of an object that was made without checks.

        Raises:
            ConfigError: when a value is out of range, or a key is unknown or missing.
        """
        plain: Any = msgspec.to_builtins(given)
        if not isinstance(plain, dict):
            msg = f"{CONFIG_KEY}: {given!r:.80} is no mapping of options; give ServiceOptions(…).config()"
            raise ConfigError(msg)
        plain["ports"] = list(plain["ports"]) if isinstance(plain.get("ports"), tuple) else plain.get("ports")
        return decode_options({name: value for name, value in plain.items() if value is not None}, cls, CONFIG_KEY)

    def config(self) -> dict[str, object]:
        """The configuration of a spout with these options.

        Raises:
            ConfigError: when a value is out of range.
        """
        plain: dict[str, object] = msgspec.to_builtins(ServiceOptions.of(self))
        return {CONFIG_KEY: {**plain, "ports": list(self.ports)}}

    def port_of(self, index: int) -> int:
        """The port of a task.

        Raises:
            ConfigError: when it has none.
        """
        if self.ports == (0,):
            return 0
        if index >= len(self.ports):
            msg = f"{CONFIG_KEY}.ports: task {index} has no port; there are {len(self.ports)}: {self.ports}; add one"
            raise ConfigError(msg)
        return self.ports[index]
