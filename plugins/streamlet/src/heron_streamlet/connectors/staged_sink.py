"""A sink whose results wait in files for their checkpoint, and are then written to another system.

The class keeps the rules of `TransactionalSink` for every such system: a log, a queue, a table. What a subclass adds is
how files are written so that a repetition does not count twice.
"""

from __future__ import annotations

import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from heron.errors import UnreachableError
from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.connectors.staging import StagedFile, StagingFolder, check_sink_id
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["StagedSink"]

_log = logging.getLogger(__name__)

T_contra = TypeVar("T_contra", contravariant=True)


class StagedSink(TransactionalSink[T_contra], ABC):
    """Implement `put`, which calls ``self.staging.append(data)`` or writes to ``self.staging.file()``, and `write`.

    The other system may be away at any time: results wait in the folder, and the next commit writes them.

    Args:
        id: names the files of this sink in `folder`. A pipeline must keep it, and no other sink of the folder may have
            it. Letters, digits, ``_`` and ``-``; at most 100.
        folder: where results wait until their checkpoint is complete. All machines that may run the task need it.

    Attributes:
        id: as given.
        staging: the files of this task; there from `setup` on.

    Raises:
        UsageError: when the id has other characters.
    """

    staging: StagingFolder

    def __init__(self, *, id: str, folder: str | Path) -> None:  # noqa: A002  # as in the sinks that derive it
        check_sink_id(id, type(self).__name__)
        self.id = id
        self._place = Path(folder).absolute()
        self._run = secrets.token_hex(8)  # one for each submission: each counts its checkpoints from 1

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`. Does not wait for the other system; call it from an override.

        Raises:
            ConnectorError: when the folder cannot be made.
        """
        self._tasks = context.partitions
        self.staging = StagingFolder(self._place, self.id, self._run, context.partition)

    @abstractmethod
    def write(self, files: Sequence[StagedFile]) -> None:
        """Show what the files have. They are removed when this returns; it may remove each one as soon as it is shown.

        The files are of one task and run, by checkpoint. Usually there is one; more have waited while the other system
        was away. After an error or a death it is called again with the files that are left, and must then show nothing
        twice: name what is written by the id of the sink and by task, run and checkpoint of the file.

        Raises:
            UnreachableError: when the other system does not answer.
            ConnectorError: when it refuses what a file has.
        """

    def prepare(self, checkpoint: int) -> None:
        """`TransactionalSink.prepare`."""
        self.staging.prepare(checkpoint)

    def commit(self, checkpoint: int) -> None:
        """`TransactionalSink.commit`.

        Raises:
            UnreachableError: when the other system does not answer; the next commit writes what waits.
            ConnectorError: when it refuses what a file has.
        """
        waiting = [file for file in self.staging.staged(self._tasks) if file.checkpoint <= checkpoint]
        for _, group in groupby(sorted(waiting, key=_origin), key=_origin):
            files = list(group)
            self.write(files)
            for file in files:
                file.path.unlink(missing_ok=True)

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`. While the other system is away, results wait for the next commit."""
        self.staging.discard(checkpoint, self._tasks)
        try:
            self.commit(checkpoint)
        except UnreachableError as error:
            _log.warning("sink %s: what checkpoint %d has waits for the next commit: %s", self.id, checkpoint, error)

    def close(self) -> None:
        """`Sink.close`. Call it from an override."""
        if hasattr(self, "staging"):
            self.staging.close()


def _origin(file: StagedFile) -> tuple[int, str]:
    return file.task, file.run
