"""A sink that writes logs: at once, or each result once, with the checkpoints."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from heron.errors import ConnectorError, UnreachableError, UserCodeError
from heron_connector_dlog.log_client import LogClient
from heron_connector_dlog.log_namespace import LogNamespace
from heron_connector_dlog.staged_records import discard_notes, write_file
from heron_connector_dlog.stream_writer import StreamWriter
from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.connectors.staging import StagingFolder, check_sink_id
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["LARGEST_BYTES", "DlogSink"]

_log = logging.getLogger(__name__)

LARGEST_BYTES = 1_040_384
"""Of a record, by the client."""
_CLOSE_S = 5.0

T_contra = TypeVar("T_contra", contravariant=True)


class DlogSink(TransactionalSink[T_contra]):
    """Writes each element as a record of a log. Task N writes the log ``STREAM-N``, which is created if it is missing.

    A log has one writer: a task fences the one before it, whose process then hears `FencedError`. That process stays
    out until it is asked for a checkpoint, which only happens to the current task. No other program may write to these
    logs. Transaction ids count the records.

    Without `folder` an element is written at once. A checkpoint waits until a quorum has everything, so with
    checkpoints nothing is lost, and after a death some records may be there twice. With `folder` records are written
    when their checkpoint is complete, each once.

    Args:
        namespace: how the client reaches the logs.
        stream: begins the names of the logs. Letters, digits, ``_`` and ``-``; at most 100.
        value: the record for an element: text or bytes. Without it, elements are texts or bytes.
        folder: where results wait until their checkpoint is complete. All machines that may run the task need it, and
            no other sink with this `stream` may have it. A pipeline must keep it. None to write at once.

    Raises:
        UsageError: when an argument is wrong.
    """

    def __init__(
        self,
        namespace: LogNamespace,
        stream: str,
        *,
        value: Callable[[T_contra], str | bytes] | None = None,
        folder: str | Path | None = None,
    ) -> None:
        check_sink_id(stream, "DlogSink", "stream")
        self.stream = stream
        self._namespace, self._value = namespace, value
        self._folder = None if folder is None else Path(folder)
        self._run = secrets.token_hex(8)  # one for each submission, as numbers of checkpoints begin again with each

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`. Starts the JVM of the client, and does not wait for the logs.

        Raises:
            JavaError: when there is no JDK, or jars are missing.
        """
        self._name = context.name
        client = LogClient(self._namespace)
        client.start()
        self._way: _Immediate | _Staged
        if self._folder is None:
            self._way = _Immediate(StreamWriter(client, f"{self.stream}-{context.partition}"))
        else:
            self._way = _Staged(client, self._folder, self._run, self.stream, context)

    def put(self, element: T_contra) -> None:
        """`Sink.put`.

        Raises:
            UserCodeError: when a record is neither text nor bytes, or too large.
        """
        given: object = element if self._value is None else self._value(element)
        payload = given.encode() if isinstance(given, str) else given
        if not isinstance(payload, bytes):
            msg = (
                f"sink {self._name!r}: {given!r:.60} is neither text nor bytes; give DlogSink a function `value` that "
                "returns one of them"
            )
            raise UserCodeError(msg)
        if len(payload) > LARGEST_BYTES:
            msg = f"sink {self._name!r}: a record of {len(payload)} bytes is larger than {LARGEST_BYTES}"
            raise UserCodeError(msg)
        self._way.put(payload)

    def prepare(self, checkpoint: int) -> None:
        """`TransactionalSink.prepare`.

        Raises:
            UnreachableError: without `folder`, when the logs do not take what was put.
            ConnectorError: without `folder`, when they refuse records; `FencedError` when another writer has taken the
                log over.
        """
        self._way.prepare(checkpoint)

    def commit(self, checkpoint: int) -> None:
        """`TransactionalSink.commit`.

        Raises:
            UnreachableError: when the logs do not answer; the next commit writes what waits. `ClientDiedError` when the
                JVM of the client has ended.
            ConnectorError: when they refuse the records; `FencedError` when another writer has taken a log over.
        """
        self._way.commit(checkpoint)

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`. While the logs do not answer, results wait for the next commit."""
        self._way.restore(checkpoint)

    def close(self) -> None:
        """`Sink.close`."""
        if hasattr(self, "_way"):
            self._way.close()


class _Immediate:
    """Records go out as they come."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer
        self._has_put = False

    def put(self, payload: bytes) -> None:
        self._writer.put(payload)
        self._writer.send()
        self._has_put = True

    def put_all(self, payloads: Sequence[bytes]) -> None:
        self._writer.put_all(payloads)
        self._has_put = True

    def prepare(self, checkpoint: int) -> None:
        del checkpoint
        if self._has_put:
            self._writer.flush()

    def commit(self, checkpoint: int) -> None:
        """Nothing: the records are visible."""

    def restore(self, checkpoint: int) -> None:
        """Nothing: the records cannot be taken back."""

    def close(self) -> None:
        if self._has_put:
            try:
                self._writer.flush(_CLOSE_S)
            except (ConnectorError, UnreachableError) as error:  # nothing more can be done
                _log.warning("%s", error)
        self._writer.close()


class _Staged:
    """Records wait in files for their checkpoint, and then are written, each file by its own log."""

    def __init__(self, client: LogClient, place: Path, run: str, stream: str, context: StageContext) -> None:
        self._client, self._place, self._stream = client, place, stream
        self._folder = StagingFolder(place, stream, run, context.partition)
        self._task, self._tasks, self._operator = context.partition, context.partitions, context.name
        self._writers: dict[int, StreamWriter] = {}
        self.prepare = self._folder.prepare

    def put(self, payload: bytes) -> None:
        self._folder.append(payload)

    def put_all(self, payloads: Sequence[bytes]) -> None:
        for each in payloads:
            self._folder.append(each)

    def commit(self, checkpoint: int) -> None:
        """Write the files up to this checkpoint."""
        for file in self._folder.staged(self._tasks):
            if file.checkpoint <= checkpoint:
                if file.task not in self._writers:
                    self._writers[file.task] = StreamWriter(self._client, f"{self._stream}-{file.task}")
                try:
                    write_file(file, self._writers[file.task])
                except BaseException:
                    self._writers.pop(file.task).close()  # what it has not written is in the file
                    raise
        for task in [task for task in self._writers if task != self._task]:
            self._writers.pop(task).close()  # a task that an update adds may write this log

    def restore(self, checkpoint: int) -> None:
        """Discard the files of newer checkpoints, and write the others."""
        self._folder.discard(checkpoint, self._tasks)
        discard_notes(self._place, f"{self._stream}.")
        try:
            self.commit(checkpoint)
        except UnreachableError as error:
            _log.warning("sink %s: what checkpoint %d has waits for the logs: %s", self._operator, checkpoint, error)

    def close(self) -> None:
        self._folder.close()
        for writer in self._writers.values():
            writer.close()
        self._client.close()
