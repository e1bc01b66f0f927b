"""A task with a `DeltaSink` that dies at an instant: ``dying_delta_sink.py TABLE FOLDER [INSTANT]``.

It writes the numbers from 0 to 29, ten for each checkpoint. As on an engine, a checkpoint is complete when its number
is in a file, between `prepare` and `commit`; a new process goes on behind the last complete one. INSTANT is reached in
the second checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from heron_connector_delta import DeltaSink, transactions
from heron_streamlet.connectors import staging
from heron_streamlet.connectors.transformer import StageContext

_CHECKPOINTS, _SIZE, _FATAL = 3, 10, 2


class _Instants:
    """Ends the process when the wanted instant comes in the fatal checkpoint."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.checkpoint = 0

    def reach(self, name: str) -> None:
        if name == self.wanted and self.checkpoint == _FATAL:
            os.kill(os.getpid(), signal.SIGKILL)


def _hook(instants: _Instants) -> None:
    """Makes instants of the calls that change a file or the table."""
    real_fsync, real_unlink = os.fsync, Path.unlink

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        instants.reach("in-prepare")

    def unlink(self: Path, missing_ok: bool = False) -> None:  # as in pathlib
        instants.reach("before-unlink")
        real_unlink(self, missing_ok)

    def write(table: Any, reader: pa.RecordBatchReader, **named: Any) -> None:  # noqa: ANN401  # as delta-rs's
        def dying() -> Iterator[pa.RecordBatch]:
            yield from reader
            instants.reach("in-write")

        instants.reach("before-write")
        write_deltalake(table, pa.RecordBatchReader.from_batches(reader.schema, dying()), **named)
        instants.reach("after-write")

    staging.os.fsync = fsync  # type: ignore[attr-defined]
    Path.unlink = unlink  # type: ignore[method-assign]
    setattr(transactions, "write_deltalake", write)  # noqa: B010  # of delta-rs, which the module imports


def main(table: str, folder: str, instant: str) -> None:
    instants = _Instants(instant)
    _hook(instants)
    complete, run = Path(folder, "complete"), Path(folder, "sink")
    sink = DeltaSink(table, id="numbers", folder=Path(folder, "s"), schema=pa.schema([("n", pa.int64())]))
    if run.exists():  # the sink travels from the command to each process of the task
        sink._run = run.read_text()
    run.write_text(sink._run)
    sink.setup(StageContext("numbers"))
    begin = int(complete.read_text()) if complete.exists() else 0
    sink.restore(begin)
    for checkpoint in range(begin + 1, _CHECKPOINTS + 1):
        instants.checkpoint = checkpoint
        for number in range(_SIZE):
            sink.put({"n": (checkpoint - 1) * _SIZE + number})
        instants.reach("before-prepare")
        sink.prepare(checkpoint)
        instants.reach("after-prepare")
        complete.write_text(str(checkpoint))
        instants.reach("before-commit")
        sink.commit(checkpoint)
        instants.reach("after-commit")
    sink.close()


if __name__ == "__main__":
    given_table, given_folder, *wanted = sys.argv[1:]
    main(given_table, given_folder, "".join(wanted))
