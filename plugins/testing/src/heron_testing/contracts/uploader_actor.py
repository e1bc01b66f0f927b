"""A process of its own that uploads until it is killed: ``… uploader_actor ENTRY OPTIONS PACKAGE NAME``.

It writes ``uploading`` before each upload, removes what it uploaded, and begins again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from heron.driver_kit.loading import open_driver
from heron.spi.driver import DriverRef
from heron.spi.uploader import Uploader

__all__: list[str] = []


def _main(entry: str, options: str, package: str, name: str) -> None:
    uploader = open_driver(DriverRef("uploader", "actor", entry, json.loads(options)), Uploader)
    while True:
        sys.stdout.write("uploading\n")
        sys.stdout.flush()
        uploader.undo(uploader.upload(Path(package), name))


if __name__ == "__main__":
    _main(*sys.argv[1:])
