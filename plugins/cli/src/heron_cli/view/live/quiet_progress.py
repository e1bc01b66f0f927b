"""The steps of a command without a bar: notes on stderr, and a bar only for a large upload."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import cast

from heron.driver_kit.loading import load_object
from heron.driver_kit.redaction import redact_for_command
from heron.spi.uploader import Uploader
from heron_cli.topologies.progress import BytesMoved, CancellableProgress, follow_upload, ignore_bytes
from heron_cli.view.text import echo

__all__ = ["WATCHED_BYTES", "QuietProgress"]

WATCHED_BYTES = 4 * 1024 * 1024
"""The size from which an upload gets a bar: 4 MiB take a second at 32 Mbit/s."""

_UploadBar = Callable[[int], AbstractContextManager[BytesMoved]]


class QuietProgress(CancellableProgress):
    """Prints notes, and a bar for large uploads, on stderr."""

    def note(self, text: str) -> None:
        echo(f"heron: note: {redact_for_command(text)}", err=True)

    @contextmanager
    def uploading(self, uploader: Uploader, size_bytes: int) -> Iterator[None]:
        bar: AbstractContextManager[BytesMoved] = nullcontext(ignore_bytes)
        if size_bytes >= WATCHED_BYTES and sys.stderr.isatty():
            upload_bar = cast("_UploadBar", load_object("heron_cli.view.live.upload_bar:upload_bar"))
            bar = upload_bar(size_bytes)
        with bar as moved, follow_upload(uploader, self.cancelled, moved):
            yield
