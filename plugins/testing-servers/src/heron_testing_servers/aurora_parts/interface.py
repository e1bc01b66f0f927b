"""Aurora's interface in Python: the types of ``aurora.thrift``, and messages in the two protocols of ``/api``."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import thriftpy2
from thriftpy2.protocol import apache_json, binary
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import memory

__all__ = ["BINARY", "JSON", "aurora", "canonical", "method_of", "packed", "processed", "unpacked"]

BINARY = "application/vnd.apache.thrift.binary"
"""The media type of the binary protocol, which the published client uses."""

JSON = "application/vnd.apache.thrift.json"
"""The media type of TJSON: for every other media type of a request, and of the header Accept."""

# thriftpy2 has no types for these.
_Binary: Any = binary.TBinaryProtocol
_Json: Any = apache_json.TApacheJSONProtocol
_Buffer: Any = memory.TMemoryBuffer

aurora: Any = thriftpy2.load(str(Path(__file__).with_name("aurora.thrift")), "heron_testing_aurora_thrift")
"""The types of the interface. thriftpy2 makes them, so they have no static types; sets are lists."""


def packed(value: Any) -> str:  # noqa: ANN401 - see `aurora`
    """Return a struct as text."""
    buffer = _Buffer()
    _Binary(buffer).write_struct(value)
    return base64.b64encode(buffer.getvalue()).decode()


def unpacked(kind: str, text: str) -> Any:  # noqa: ANN401
    """Return a struct that was packed."""
    value = getattr(aurora, kind)()
    _Binary(_Buffer(base64.b64decode(text))).read_struct(value)
    return value


def canonical(value: Any) -> object:  # noqa: ANN401
    """Return a value that is the same for equal structs, whatever the order of their sets."""
    if isinstance(value, list | set | tuple):
        return sorted((canonical(each) for each in value), key=repr)
    if isinstance(value, dict):
        return sorted((canonical(key), canonical(each)) for key, each in value.items())
    if hasattr(value, "thrift_spec"):
        found = (
            (name, canonical(getattr(value, name))) for _, name, *_ in sorted(value.thrift_spec.values(), key=repr)
        )
        return [(name, each) for name, each in found if each not in (None, [])]
    return value


def method_of(body: bytes, media_type: str) -> str:
    """Return the method that a message calls. Raises ValueError for what is no message."""
    try:
        if media_type == BINARY:
            (length,) = struct.unpack(">i", body[4:8])
            return body[8 : 8 + length].decode()
        return str(json.loads(body)[1])
    except (struct.error, LookupError, TypeError) as error:
        msg = f"no message of thrift: {error}"
        raise ValueError(msg) from error


def processed(handler: object, body: bytes, media_type: str, accepted: str) -> bytes:
    """Carry a call out and return the message of its answer."""
    protocols = {True: _Binary, False: _Json}
    answer = _Buffer()
    writer = protocols[accepted == BINARY](answer)
    TProcessor(aurora.AuroraAdmin, handler).process(protocols[media_type == BINARY](_Buffer(body)), writer)
    return bytes(answer.getvalue())
