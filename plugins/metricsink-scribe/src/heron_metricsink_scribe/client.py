"""The call ``Log`` of Scribe over framed Thrift. This module encloses the untyped parts of the library."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import thriftpy2
from thriftpy2.protocol.binary import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TException
from thriftpy2.transport.framed import TFramedTransportFactory

from heron.errors import SinkError

__all__ = ["Answer", "Client", "Entry"]

_TIMEOUT_S = 4.0  # once to connect and once for the answer, because a flush may block for 10 s


class Answer(enum.Enum):
    """The answer to a batch: accepted, or refused for now."""

    OK = 0
    TRY_LATER = 1


class Entry(NamedTuple):
    """A message and its category."""

    category: str
    message: str


class _Remote(Protocol):
    """The client that the library generates from the interface."""

    def Log(self, messages: Sequence[object]) -> int: ...  # as in scribe.thrift

    def close(self) -> None: ...


class Client:
    """Connects at the first call, and at the first call after an error."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._remote: _Remote | None = None
        self._interface = thriftpy2.load(str(Path(__file__).with_name("scribe.thrift")), "heron_scribe_thrift")

    def log(self, entries: Sequence[Entry], timeout_s: float = _TIMEOUT_S) -> Answer:
        """Send a batch; the server accepts or refuses all of it.

        Raises:
            SinkError: when there is no answer. The server may have accepted the batch.
        """
        host, port = self._address
        try:
            if self._remote is None:
                self._remote = self._connect(timeout_s)
            batch = [self._interface.LogEntry(category=each.category, message=each.message) for each in entries]
            return Answer(self._remote.Log(batch))
        except Exception as error:  # any kind: the server may not be Scribe
            self.close()
            msg = f"Scribe at {host}:{port} does not answer: {error}; is it running, and are host and port right?"
            raise SinkError(msg) from error

    def close(self) -> None:
        """Close the connection. Idempotent."""
        if self._remote is not None:
            with contextlib.suppress(OSError, TException):
                self._remote.close()
            self._remote = None

    def _connect(self, timeout_s: float) -> _Remote:
        host, port = self._address
        made = make_client(
            self._interface.scribe,
            host,
            port,
            # Flume and old servers send answers without a version.
            proto_factory=TBinaryProtocolFactory(strict_read=False),  # type: ignore[no-untyped-call]
            trans_factory=TFramedTransportFactory(),
            timeout=int(timeout_s * 1000),
        )
        return cast("_Remote", made)
