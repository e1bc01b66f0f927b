"""Sinks: where results go. A sink writes at least once; a `TransactionalSink` takes part in checkpoints."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Generic, TypeVar

from heron_streamlet.connectors.transformer import StageContext

__all__ = ["Sink", "TextFolder", "TransactionalSink"]

T_contra = TypeVar("T_contra", contravariant=True)


class Sink(ABC, Generic[T_contra]):
    """Takes the elements of a stream. Each task has a copy of the object; all calls come from one thread."""

    def check(self, config: Mapping[str, object]) -> None:  # optional
        """Called before a pipeline starts on Heron, with the configuration of its topology: refuse what cannot work.

        Raises:
            UsageError: when an argument of the sink does not fit the configuration.
        """

    def setup(self, context: StageContext) -> None:  # optional
        """Open what the task needs. Called once, before `put`."""

    @abstractmethod
    def put(self, element: T_contra) -> None:
        """Write an element. An exception fails the record."""

    def close(self) -> None:  # optional
        """Release what `setup` opened. Not called when the process is killed."""


class TransactionalSink(Sink[T_contra], ABC):
    """A sink whose writes become visible when their checkpoint is complete, in topologies with EFFECTIVELY_ONCE.

    Checkpoint numbers ascend. In topologies without checkpoints, `prepare` and `commit` follow each other once, at the
    end of the input. In the task of a source, one that raises there is called again, until it succeeds.
    """

    @abstractmethod
    def prepare(self, checkpoint: int) -> None:
        """Make durable what was put since the last call, under this number, but do not show it."""

    @abstractmethod
    def commit(self, checkpoint: int) -> None:
        """Show everything that was prepared up to this number. May be called again, and for numbers of others."""

    @abstractmethod
    def restore(self, checkpoint: int) -> None:
        """Commit what was prepared up to this number, and discard everything newer. 0 discards everything."""


class TextFolder(TransactionalSink[object]):
    """Appends each element as a line to a file of the task, ``part-TASK-CHECKPOINT.txt``, in a folder.

    Files that end with ``.pending`` are not committed. With EFFECTIVELY_ONCE each line is there once. Checkpoints of a
    new submission are counted from 1 again, and its files replace those with the same names: give it another folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._task = ""
        self._file: IO[str] | None = None

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._task = f"{context.name}-{context.partition}"

    def put(self, element: object) -> None:
        """`Sink.put`."""
        if self._file is None:
            self._file = (self.folder / f".open-{self._task}").open("w", encoding="utf-8")
        self._file.write(f"{element}\n")

    def prepare(self, checkpoint: int) -> None:
        """`TransactionalSink.prepare`."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
            (self.folder / f".open-{self._task}").replace(self._pending(checkpoint))

    def commit(self, checkpoint: int) -> None:
        """`TransactionalSink.commit`."""
        for path, number in self._all_pending():
            if number <= checkpoint:
                path.replace(path.with_suffix(""))

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`."""
        self._file = None
        self.commit(checkpoint)
        for path, _ in self._all_pending():
            path.unlink()

    def close(self) -> None:
        """`Sink.close`."""
        if self._file is not None:
            self._file.close()

    def _pending(self, checkpoint: int) -> Path:
        return self.folder / f"part-{self._task}-{checkpoint:08}.txt.pending"

    def _all_pending(self) -> list[tuple[Path, int]]:
        # Not by glob: a name may have its special characters, or be the begin of another sink's name.
        own = re.compile(re.escape(f"part-{self._task}-") + r"([0-9]+)\.txt\.pending")
        found = [(path, own.fullmatch(path.name)) for path in sorted(self.folder.iterdir())]
        return [(path, int(match[1])) for path, match in found if match]
