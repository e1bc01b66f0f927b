"""A program of Storm's ShellBolt: it emits each number with the ids of the tasks that have got the last one."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from pathlib import Path


def read() -> object:
    """The next message."""
    lines = []
    while (line := sys.stdin.readline()) != "end\n":
        if not line:
            sys.exit(0)
        lines.append(line)
    return json.loads("".join(lines))


def send(**message: object) -> None:
    """Write a message."""
    sys.stdout.write(f"{json.dumps(message)}\nend\n")
    sys.stdout.flush()


setup = read()
assert isinstance(setup, dict)
Path(setup["pidDir"], str(os.getpid())).touch()
send(pid=os.getpid())
waiting: deque[dict[str, object]] = deque()
known: list[int] = []
while True:
    message = waiting.popleft() if waiting else read()
    assert isinstance(message, dict)
    if message.get("stream") == "__heartbeat":
        send(command="sync")
        continue
    values = message["tuple"]
    assert isinstance(values, list)
    send(command="emit", anchors=[message["id"]], tuple=[values[0], str(known)])
    while isinstance(reply := read(), dict):
        waiting.append(reply)
    assert isinstance(reply, list)
    known = reply
    send(command="ack", id=message["id"])
