"""A sink that publishes what a checkpoint contains, when the checkpoint is complete."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import nats.errors
import nats.js.errors
from heron.errors import ConnectorError, UnreachableError, UserCodeError
from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.connectors.staging import StagedFile, StagingFolder
from heron_streamlet.connectors.transformer import StageContext
from nats.js import JetStreamContext

from heron_connector_nats.connection import Connection, Options

__all__ = ["NatsSink"]

_log = logging.getLogger(__name__)

_LENGTH_BYTES = 4
_AT_ONCE = 256  # messages that wait for their acknowledgements together
_HEAD_BYTES = 200  # of the header with the id, beside the name of the sink

T_contra = TypeVar("T_contra", contravariant=True)


class NatsSink(TransactionalSink[T_contra]):
    """Publishes each element to a subject of a stream when its checkpoint is complete.

    Each message has an id made of run, task, checkpoint and number, and JetStream drops a message whose id it has seen.
    So each result is in the stream once, unless a task is away for longer than the ``duplicate_window`` of the stream.

    Args:
        servers: URLs such as ``nats://nats1.example.org:4222``.
        subject: of the messages; a stream must take it.
        id: names the files of this sink in `folder`. A pipeline must keep it.
        folder: where messages wait for their checkpoint. All machines that may run the task need it.
        value: returns text or bytes for an element. Without it, elements are texts or bytes.
        options: a function that returns more arguments of `nats.connect`.
    """

    def __init__(
        self,
        servers: Sequence[str],
        subject: str,
        *,
        id: str,  # noqa: A002  # as in Heron's connectors
        folder: str | Path,
        value: Callable[[T_contra], str | bytes] | None = None,
        options: Options | None = None,
    ) -> None:
        self._servers, self._subject, self._options = list(servers), subject, options
        self._id, self._place, self._value = id, Path(folder), value
        self._run = secrets.token_hex(8)  # one for each submission: each counts its checkpoints from 1

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`. Does not wait for NATS."""
        self._tasks = context.partitions
        self._folder = StagingFolder(self._place, self._id, self._run, context.partition)
        self._connection = Connection(self._servers, self._options)
        self._connection.begin()

    def put(self, element: T_contra) -> None:
        """`Sink.put`: into the file of the next checkpoint.

        Raises:
            UserCodeError: when the value is neither text nor bytes, or too large for a message.
        """
        given: object = element if self._value is None else self._value(element)
        data = given.encode() if isinstance(given, str) else given
        if not isinstance(data, bytes):
            msg = f"subject {self._subject!r}: {data!r:.60} is neither text nor bytes; give NatsSink a function `value`"
            raise UserCodeError(msg)
        largest = self._connection.most_bytes - _HEAD_BYTES - len(self._id.encode())
        if len(data) > largest:
            msg = (
                f"subject {self._subject!r}: {len(data)} bytes are more than {largest}; raise max_payload of the server"
            )
            raise UserCodeError(msg)
        self._folder.file().write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)

    def prepare(self, checkpoint: int) -> None:
        """`TransactionalSink.prepare`."""
        self._folder.prepare(checkpoint)

    def commit(self, checkpoint: int) -> None:
        """`TransactionalSink.commit`. After an error the outcome is unknown, and the next call publishes again.

        Raises:
            UnreachableError: when NATS does not answer, or is not ready.
            ConnectorError: when no stream takes the subject, or the stream refuses a message.
        """
        for file in self._folder.staged(self._tasks):
            if file.checkpoint <= checkpoint:
                self._publish(file)
                file.path.unlink(missing_ok=True)

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`. While NATS is away, messages wait for the next commit."""
        self._folder.discard_open()
        for file in self._folder.staged(self._tasks):
            if file.checkpoint > checkpoint:
                file.path.unlink(missing_ok=True)
        try:
            self.commit(checkpoint)
        except UnreachableError as error:
            _log.warning("sink %s: what checkpoint %d has waits for NATS: %s", self._id, checkpoint, error)

    def close(self) -> None:
        """`Sink.close`."""
        if hasattr(self, "_connection"):
            self._folder.close()
            self._connection.close()

    def _publish(self, file: StagedFile) -> None:
        messages = _messages_of(file.path)
        name = f"{self._id}.{file.task}.{file.run}.{file.checkpoint}"
        try:
            for begin in range(0, len(messages), _AT_ONCE):
                numbered = [(f"{name}.{begin + index}", each) for index, each in enumerate(messages[begin:][:_AT_ONCE])]
                self._connection.call(lambda js, numbered=numbered: self._send(js, numbered))  # type: ignore[misc]
        except nats.js.errors.NoStreamResponseError as error:
            if self._is_loading():
                msg = f"subject {self._subject!r}: JetStream is not ready yet"
                raise UnreachableError(msg) from error
            msg = f"no stream takes the subject {self._subject!r}; create one, or correct the subject"
            raise ConnectorError(msg) from error
        except nats.errors.Error as error:
            msg = f"subject {self._subject!r}: {error}"
            raise ConnectorError(msg) from error

    def _is_loading(self) -> bool:
        """Whether a stream has the subject, or JetStream cannot tell: a server takes messages before its streams do.

        Raises:
            UnreachableError: when NATS does not answer.
        """
        try:
            self._connection.call(lambda js: js.find_stream_name_by_subject(self._subject))
        except nats.js.errors.NotFoundError:
            return False
        except nats.errors.Error:
            return True
        return True

    async def _send(self, js: JetStreamContext, messages: Sequence[tuple[str, bytes]]) -> None:
        await asyncio.gather(
            *(js.publish(self._subject, data, headers={"Nats-Msg-Id": number}) for number, data in messages)
        )


def _messages_of(path: Path) -> list[bytes]:
    data, found, at = path.read_bytes(), [], 0
    while at < len(data):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(data[at:begin], "big")
        found.append(data[begin:at])
    return found
