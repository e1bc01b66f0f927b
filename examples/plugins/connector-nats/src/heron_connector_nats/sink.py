"""A sink that publishes what a checkpoint contains, when the checkpoint is complete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import nats.errors
import nats.js.errors
from heron.errors import ConnectorError, UnreachableError, UserCodeError
from heron_streamlet.connectors.staged_sink import StagedSink
from heron_streamlet.connectors.staging import StagedFile
from heron_streamlet.connectors.transformer import StageContext
from nats.js import JetStreamContext

from heron_connector_nats.connection import Connection, Options

__all__ = ["NatsSink"]

_AT_ONCE = 256  # messages that wait for their acknowledgements together
_HEAD_BYTES = 200  # of the header with the id, beside the name of the sink

T_contra = TypeVar("T_contra", contravariant=True)


class NatsSink(StagedSink[T_contra]):
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
        super().__init__(id=id, folder=folder)
        self._servers, self._subject, self._options = list(servers), subject, options
        self._value = value

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`. Does not wait for NATS."""
        super().setup(context)
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
        largest = self._connection.most_bytes - _HEAD_BYTES - len(self.id.encode())
        if len(data) > largest:
            msg = (
                f"subject {self._subject!r}: {len(data)} bytes are more than {largest}; raise max_payload of the server"
            )
            raise UserCodeError(msg)
        self.staging.append(data)

    def write(self, files: Sequence[StagedFile]) -> None:
        """`StagedSink.write`. After an error the outcome is unknown, and the next call publishes again.

        A file is removed at once, so that the window of JetStream has to cover no more than one.

        Raises:
            UnreachableError: when NATS does not answer, or is not ready.
            ConnectorError: when no stream takes the subject, or the stream refuses a message.
        """
        for file in files:
            self._publish(list(file.messages()), f"{self.id}.{file.task}.{file.run}.{file.checkpoint}")
            file.path.unlink(missing_ok=True)

    def close(self) -> None:
        """`Sink.close`."""
        super().close()
        if hasattr(self, "_connection"):
            self._connection.close()

    def _publish(self, messages: Sequence[bytes], name: str) -> None:
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
