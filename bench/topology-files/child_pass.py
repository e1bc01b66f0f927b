"""A bolt in a child process: sends each word on, anchored, and acks it. It has no library, so a host is measured."""

from __future__ import annotations

import json
import os
import sys

_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


def main() -> None:
    """Until the input ends."""
    out = sys.stdout
    for line in sys.stdin:
        if line == "end\n":
            continue
        message = json.loads(line)
        if "pidDir" in message:
            reply = _ENCODE({"pid": os.getpid()}) + "\nend\n"
        elif message["stream"] == "__heartbeat":
            reply = '{"command":"sync"}\nend\n'
        else:
            name, word = message["id"], message["tuple"][0]
            emit = {"command": "emit", "anchors": [name], "tuple": [word], "need_task_ids": False}
            reply = f"{_ENCODE(emit)}\nend\n{_ENCODE({'command': 'ack', 'id': name})}\nend\n"
        out.write(reply)
        out.flush()


if __name__ == "__main__":
    main()
