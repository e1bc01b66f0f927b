"""RecordIO, the framing of the events of Mesos: a length in decimal digits, a line feed, and so many bytes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["MOST_BYTES", "Records"]

MOST_BYTES = 1 << 26
"""The longest event; the offers of a thousand agents have some megabytes."""

_DIGITS = len(str(MOST_BYTES))


class Records:
    """Cuts chunks of any length into records."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the records that are complete. Raises ValueError when the bytes are not RecordIO."""
        self._rest += chunk
        while True:
            digits, found, body = self._rest.partition(b"\n")
            if len(digits) > _DIGITS or (digits and not digits.isdigit()) or int(digits or b"0") > MOST_BYTES:
                msg = f"{digits[:20]!r} is not the length of an event, at most {MOST_BYTES} bytes"
                raise ValueError(msg)
            if not found or len(body) < int(digits or b"0"):
                return
            size = int(digits or b"0")
            self._rest = body[size:]
            if size:
                yield body[:size]
