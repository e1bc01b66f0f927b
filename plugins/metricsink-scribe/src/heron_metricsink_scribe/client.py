"""Scribe's one call, over framed Thrift. What the library is not typed for ends here."""

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

_TIMEOUT_S = 4.0  # to connect, and again for the answer: a flush may block for 10 s


class Answer(enum.Enum):
    """What the server says of a batch: taken, or not now."""

    OK = 0
    TRY_LATER = 1


class Entry(NamedTuple):
    """One message and the category that it is filed under."""

    category: str
    message: str


class _Remote(Protocol):
    """The client that the library makes of the interface."""

    def Log(self, messages: Sequence[object]) -> int: ...  # as in scribe.thrift

    def close(self) -> None: ...


class Client:
    """Connects at the first call, and anew at the next one after an error."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._remote: _Remote | None = None
        self._interface = thriftpy2.load(str(Path(__file__).with_name("scribe.thrift")), "heron_scribe_thrift")

    def log(self, entries: Sequence[Entry], timeout_s: float = _TIMEOUT_S) -> Answer:
        """Sends a batch, which the server takes as a whole or not at all.

        Raises:
            SinkError: when there is no answer; whether the batch was taken is unknown then.
        """
        host, port = self._address
        try:
            if self._remote is None:
                self._remote = self._connect(timeout_s)
            batch = [self._interface.LogEntry(category=each.category, message=each.message) for each in entries]
            return Answer(self._remote.Log(batch))
        except Exception as error:  # of whatever kind: what answers may be no Scribe at all
            self.close()
            msg = f"Scribe at {host}:{port} does not answer: {error}; is it running, and are host and port right?"
            raise SinkError(msg) from error

    def close(self) -> None:
        """Ends the connection. Idempotent."""
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
            # Flume and old servers answer in the form without a version.
            proto_factory=TBinaryProtocolFactory(strict_read=False),  # type: ignore[no-untyped-call]
            trans_factory=TFramedTransportFactory(),
            timeout=int(timeout_s * 1000),
        )
        return cast("_Remote", made)
