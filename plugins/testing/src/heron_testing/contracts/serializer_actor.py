"""A process of its own that decodes a payload and encodes what it read: ``… serializer_actor ENTRY OPTIONS``.

The payload comes on stdin, the answer goes to stdout.
"""

from __future__ import annotations

import json
import sys

from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef
from heron.spi.serializer import Serializer

__all__: list[str] = []


def _main(entry: str, options: str) -> None:
    serializer = open_driver(DriverRef("serializer", "actor", entry, json.loads(options)), Serializer)
    sys.stdout.buffer.write(serializer.encode(serializer.decode(sys.stdin.buffer.read())))


if __name__ == "__main__":
    _main(*sys.argv[1:])
