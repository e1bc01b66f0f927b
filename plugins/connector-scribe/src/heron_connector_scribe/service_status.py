"""The calls of ``fb303``, by which monitoring asks a Scribe collector how it is."""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heron_connector_scribe.thrift_frames import (
    Call,
    exception_reply,
    fields_reply,
    string_argument,
    string_field,
)

__all__ = ["ServiceStatus", "Status"]

_UNKNOWN_METHOD = 1
_I32_RESULT, _I64_RESULT, _MAP_RESULT = b"\x08\x00\x00", b"\x0a\x00\x00", b"\x0d\x00\x00"
_TEXT_TO_I64, _TEXT_TO_TEXT = b"\x0b\x0a", b"\x0b\x0b"


class Status(enum.IntEnum):
    """The values of ``fb_status`` that a collector has."""

    ALIVE = 2
    WARNING = 5


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """What a collector answers now. A WARNING means that the last call of ``Log`` was answered TRY_LATER."""

    name: str
    status: Status
    details: str
    counters: Mapping[str, int]
    since_s: int

    def reply(self, call: Call, frame: bytes) -> bytes:
        """The answer to any call but ``Log``; an unknown method is Thrift's exception.

        Raises:
            MalformedFrameError: when the argument of ``getCounter`` is not one.
        """
        answers: dict[str, Callable[[], bytes]] = {
            "getName": lambda: string_field(0, self.name),
            "getVersion": lambda: string_field(0, "heron"),
            "getStatus": lambda: _I32_RESULT + struct.pack(">i", self.status),
            "getStatusDetails": lambda: string_field(0, self.details),
            "aliveSince": lambda: _I64_RESULT + struct.pack(">q", self.since_s),
            "getCounter": lambda: _I64_RESULT + struct.pack(">q", self._counter(string_argument(frame, call.offset))),
            "getCounters": self._all_counters,
            "getOptions": lambda: _MAP_RESULT + _TEXT_TO_TEXT + struct.pack(">i", 0),
        }
        if (answer := answers.get(call.name)) is None:
            return exception_reply(call, _UNKNOWN_METHOD, f"unknown method {call.name!r}; this is a Scribe collector")
        return fields_reply(call, answer())

    def _counter(self, name: str) -> int:
        return self.counters.get(name, 0)

    def _all_counters(self) -> bytes:
        pairs = b"".join(_pair(name, value) for name, value in self.counters.items())
        return _MAP_RESULT + _TEXT_TO_I64 + struct.pack(">i", len(self.counters)) + pairs


def _pair(name: str, value: int) -> bytes:
    raw = name.encode()
    return struct.pack(">i", len(raw)) + raw + struct.pack(">q", value)
