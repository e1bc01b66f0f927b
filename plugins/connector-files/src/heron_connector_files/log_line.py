"""The elements of the source."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LogLine"]


class LogLine(NamedTuple):
    """A line of a log.

    Attributes:
        log: the name of the log in its directory, also for lines of its rotated files.
        offset: where the line begins in its file, in bytes; for a compressed file in the bytes that it contains.
        data: the bytes of the line, without its end, which is a line feed with or without a carriage return.
        is_complete: False for a piece of a line above the limit of bytes, and for the bytes behind the last line end of
            a rotated file.
    """

    log: str
    offset: int
    data: bytes
    is_complete: bool = True

    @property
    def text(self) -> str:
        """The line in UTF-8.

        Raises:
            UnicodeDecodeError: when its bytes are not UTF-8. In a function of a step the line then fails by its rule.
        """
        return self.data.decode()
