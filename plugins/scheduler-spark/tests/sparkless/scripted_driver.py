"""A driver whose containers run on another machine: it reports each as up, and then as ended.

Arguments: ``seen`` if the container's task saw its executor end; the last one is the descriptor.
"""

from __future__ import annotations

import select
import socket
import sys

from heron_scheduler_spark.messages.message_stream import MessageStream

if __name__ == "__main__":
    stream = MessageStream(socket.socket(fileno=int(sys.argv[-1])))
    stream.send({"is": "ready", "handle": "scripted", "links": {}})
    while not stream.closed:
        select.select([stream], [], [])
        for request in stream.receive():
            of = {"container_id": request["container_id"], "attempt": request["attempt"]}
            stream.send({"is": "placed", "text": "is being started", **of})
            stream.send({"is": "begun", "pid": 1, "begun": "123@another machine", **of})
            stream.send({"is": "up", "where": "elsewhere", **of})
            stream.send({"is": "ended", "error": "lost", "seen": sys.argv[1] == "seen", **of})
