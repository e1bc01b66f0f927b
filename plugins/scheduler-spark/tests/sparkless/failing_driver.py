"""A driver that serves after its first start until the file of its starts exists; later starts fail after a while.

Arguments: that file, to which each later start adds its time; the job file, which start it is, and the descriptor.
"""

from __future__ import annotations

import select
import socket
import sys
import threading
from pathlib import Path

from heron.clock import monotonic_s
from heron_scheduler_spark.driver_process import FIRST_START
from heron_scheduler_spark.messages.message_stream import MessageStream

_TRIES_S = 0.15


def _serve(starts: Path, stream: MessageStream) -> None:
    stream.send({"is": "ready", "handle": "scripted", "links": {}})
    while not starts.exists():
        select.select([stream], [], [], 0.05)
        for request in stream.receive():
            of = {"container_id": request["container_id"], "attempt": request["attempt"]}
            stream.send({"is": "up", "where": "elsewhere", **of})


if __name__ == "__main__":
    found = Path(sys.argv[1])
    if sys.argv[-2] == FIRST_START:
        _serve(found, MessageStream(socket.socket(fileno=int(sys.argv[-1]))))
    else:
        with found.open("a") as file:
            file.write(f"{monotonic_s()}\n")
        threading.Event().wait(_TRIES_S)
    sys.exit(1)
