"""The programs of the bench `ScribeIn`: ``python -m bench.scribe_programs load HOST:PORT``, ``… collect FOLDER``.

``load`` is clients that send a ready-made call again and again, each when the one before is answered. ``collect`` is a
collector as somebody writes it by hand: one loop, with the parser of ``heron-connector-scribe``, that counts.
"""

from __future__ import annotations

import selectors
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from heron_connector_scribe.message_partitions import MessagePartitions
from heron_connector_scribe.thrift_frames import log_entries, parse_call, result_reply

__all__ = ["MESSAGES", "MESSAGE_BYTES"]

MESSAGES, MESSAGE_BYTES = 1000, 100
_CLIENTS = 16
_REPLY_BYTES = 24
_RECEIVE_BYTES = 262_144
_NOTE_S = 0.1


def _call() -> bytes:
    entry = struct.pack(">bhi", 11, 1, 3) + b"web" + struct.pack(">bhi", 11, 2, MESSAGE_BYTES)
    entries = b"".join(entry + b"%0*d\n" % (MESSAGE_BYTES - 1, number) + b"\0" for number in range(MESSAGES))
    head = struct.pack(">i", 3) + b"Log\x01" + struct.pack(">i", 1)
    body = head + struct.pack(">bhbi", 15, 1, 12, MESSAGES) + entries + b"\0"
    return struct.pack(">i", len(body)) + body


def _load(address: str) -> None:
    host, _, port = address.rpartition(":")
    selector, call = selectors.DefaultSelector(), _call()
    for _ in range(_CLIENTS):
        client = socket.create_connection((host, int(port)))
        client.sendall(call)
        selector.register(client, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            client = key.fileobj  # type: ignore[assignment]  # what was registered
            if len(client.recv(_REPLY_BYTES, socket.MSG_WAITALL)) < _REPLY_BYTES:
                return
            client.sendall(call)


def _collect(folder: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    (folder / "port").write_text(str(listener.getsockname()[1]), encoding="utf-8")
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    place, counts, buffers = MessagePartitions({}, b"\1").of, Counter[str](), dict[socket.socket, bytearray]()
    next_s = 0.0
    with (folder / "last-0.log").open("a", encoding="utf-8", buffering=1) as notes:
        while True:
            for key, _ in selector.select(_NOTE_S):
                if key.fileobj is listener:
                    client, _ = listener.accept()
                    selector.register(client, selectors.EVENT_READ)
                    buffers[client] = bytearray()
                    continue
                client = key.fileobj  # type: ignore[assignment]  # what was registered
                buffer = buffers[client]
                buffer += client.recv(_RECEIVE_BYTES)
                if len(buffer) >= 4 and len(buffer) >= 4 + (size := struct.unpack_from(">i", buffer)[0]):
                    frame = bytes(buffer[4 : 4 + size])
                    del buffer[: 4 + size]
                    call = parse_call(frame)
                    for category, _, _ in log_entries(frame, call.offset, 100_000, place):
                        counts[category] += 1
                    client.sendall(result_reply(call, 0))
            if (now_s := time.monotonic()) >= next_s:
                next_s = now_s + _NOTE_S
                notes.write(f"{now_s} {counts.total()}\n")


def main(arguments: Sequence[str]) -> None:
    """Run a program."""
    what, where = arguments
    if what == "load":
        _load(where)
    else:
        _collect(Path(where))


if __name__ == "__main__":
    main(sys.argv[1:])
