"""When Prometheus last came: the only way to learn that it does not come any more, since it is the one who asks.

People and probes read the page, too; only a scrape says how long the scraper waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from heron.clock import Clock, SystemClock

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["Scrapes"]

_HEADER = "HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS"


class Scrapes:
    """Stands before the page. Noted by the threads that serve it, read by the sink's."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._last_s: float | None = None

    def of(self, page: WSGIApplication) -> WSGIApplication:
        """The same page, whose scrapes are noted."""

        def noted(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if _HEADER in environ:
                self._last_s = self._clock.monotonic_s()
            return page(environ, start_response)

        return noted

    def silent_s(self) -> float:
        """The seconds since the last one; 0 before the first."""
        return 0.0 if self._last_s is None else self._clock.monotonic_s() - self._last_s
