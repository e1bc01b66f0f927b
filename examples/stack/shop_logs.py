"""A program that logs to Scribe: the origin of the lines.

Each sender has a connection and one call under way. It sends its batch again, as it is and to the same collector, until
it has an OK. So a line that was written is counted once, whatever dies but this program.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence

from page_views import CATEGORY, line

from heron.errors import SinkError
from heron_metricsink_scribe.client import Answer, Client, Entry

PAGES = [f"/page-{number}" for number in range(100)]
_SENDERS = 8
_GATHER_S = 0.02
_MOST_LINES = 2000
_PAUSE_S = 0.1
_ANSWER_S = 30.0  # an answer comes with a checkpoint, which waits while a process is replaced


class ShopLogs:
    """Writes lines to the collectors, in the background."""

    def __init__(self, collectors: Sequence[tuple[str, int]]) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._senders = [
            threading.Thread(target=self._send, args=collectors[number % len(collectors)], daemon=True)
            for number in range(_SENDERS)
        ]
        for each in self._senders:
            each.start()

    def write(self, page: str) -> None:
        """Log that a page was seen now. Returns at once."""
        self._lines.put(line(time.time(), page))

    def close(self) -> None:
        """Wait until all lines have their OK."""
        for _ in self._senders:
            self._lines.put(None)
        for each in self._senders:
            each.join()

    def _send(self, host: str, port: int) -> None:
        client = Client(host, port)
        while (first := self._lines.get()) is not None:
            batch, is_last = self._gathered(first)
            while not self._is_taken(client, batch):
                time.sleep(_PAUSE_S)
            if is_last:
                break
        client.close()

    def _gathered(self, first: str) -> tuple[list[Entry], bool]:
        batch, until_s = [Entry(CATEGORY, first)], time.monotonic() + _GATHER_S
        while len(batch) < _MOST_LINES:
            try:
                text = self._lines.get(timeout=max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                break
            if text is None:
                return batch, True
            batch.append(Entry(CATEGORY, text))
        return batch, False

    @staticmethod
    def _is_taken(client: Client, batch: Sequence[Entry]) -> bool:
        try:
            return client.log(batch, _ANSWER_S) is Answer.OK
        except SinkError:
            return False  # it may have the batch: it recognises it
