"""A driver that serves in its first life, until there is the file of its lives, and in later ones tries for some time.

Arguments: that file, to which each later life adds when it began; the job's file, which life it is, and the descriptor.
"""

from __future__ import annotations

import select
import socket
import sys
import threading
from pathlib import Path

from heron.clock import monotonic_s
from heron_scheduler_spark.driver_process import FIRST_LIFE
from heron_scheduler_spark.message_stream import MessageStream

_TRIES_S = 0.15


def _serve(lives: Path, stream: MessageStream) -> None:
    stream.send({"is": "ready", "handle": "scripted", "links": {}})
    while not lives.exists():
        select.select([stream], [], [], 0.05)
        for asked in stream.receive():
            of = {"container_id": asked["container_id"], "attempt": asked["attempt"]}
            stream.send({"is": "up", "where": "elsewhere", **of})


if __name__ == "__main__":
    found = Path(sys.argv[1])
    if sys.argv[-2] == FIRST_LIFE:
        _serve(found, MessageStream(socket.socket(fileno=int(sys.argv[-1]))))
    else:
        with found.open("a") as file:
            file.write(f"{monotonic_s()}\n")
        threading.Event().wait(_TRIES_S)
    sys.exit(1)
