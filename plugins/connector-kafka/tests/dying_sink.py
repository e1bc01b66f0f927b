"""A task with a `KafkaSink` that dies at an instant: ``dying_sink.py SERVERS TOPIC FOLDER [INSTANT]``.

It writes the numbers from 0 to 29, ten for each checkpoint. As on an engine, a checkpoint is complete when its number
is in a file, between `prepare` and `commit`; a new process goes on behind the last complete one. INSTANT is reached in
the second checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from heron_connector_kafka import KafkaSink, Transactions, cluster
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


def main(servers: str, topic: str, folder: str, instant: str) -> None:
    instants = _Instants(instant)

    class DyingProducer(Producer):
        """Calls of the client are instants too."""

        def produce(self, *args: Any, **named: Any) -> None:  # noqa: ANN401  # as the client's
            super().produce(*args, **named)
            if args[1] == b"15":
                self.flush(10)  # so that the broker has some records of the open transaction
                instants.reach("in-produce")

    for name in ("begin_transaction", "send_offsets_to_transaction", "commit_transaction"):

        def dying(self: Producer, *args: Any, name: str = name) -> None:  # noqa: ANN401  # as the client's
            if name != "begin_transaction":
                self.flush(10)
            instants.reach(f"before-{name}")
            getattr(Producer, name)(self, *args)
            instants.reach(f"after-{name}")

        setattr(DyingProducer, name, dying)
    setattr(cluster, "Producer", DyingProducer)  # noqa: B010  # of the client, which the module imports
    real_fsync = os.fsync

    def dying_fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        instants.reach("in-prepare")

    staging.os.fsync = dying_fsync  # type: ignore[attr-defined]

    complete = Path(folder, "complete")
    run = Path(folder, "sink")
    sink: KafkaSink[int] = KafkaSink(servers, topic, value=str, transactions=Transactions("numbers", Path(folder, "s")))
    staged = sink._staged
    assert staged is not None
    if run.exists():  # the sink travels from the command to each process of the task
        staged._run = run.read_text()
    run.write_text(staged._run)
    sink.setup(StageContext("numbers"))
    begin = int(complete.read_text()) if complete.exists() else 0
    sink.restore(begin)
    for checkpoint in range(begin + 1, _CHECKPOINTS + 1):
        instants.checkpoint = checkpoint
        for number in range(_SIZE):
            sink.put((checkpoint - 1) * _SIZE + number)
        instants.reach("before-prepare")
        sink.prepare(checkpoint)
        instants.reach("after-prepare")
        complete.write_text(str(checkpoint))
        instants.reach("before-commit")
        sink.commit(checkpoint)
        instants.reach("after-commit")
    sink.close()


if __name__ == "__main__":
    given_servers, given_topic, given_folder, *wanted = sys.argv[1:]
    main(given_servers, given_topic, given_folder, "".join(wanted))
