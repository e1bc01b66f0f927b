"""Frames that break the protocol: counted by link and kind, logged at a limited rate, answered a few times.

A violation costs its sender the session. It must not cost this process its disk, its memory or its time: a peer can
send a thousand bad frames each second.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable

from heron.clock import monotonic_s
from heron.errors import HeronError, RemoteProtocolError, Violation
from heron.ipc.documents.metric_names import PROTOCOL_VIOLATIONS
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["Violations", "violation_of"]

_LOGGED = 20
_PERIOD_S = 60.0
"""The log gets the first 20 violations of each minute. A process that starts breaks the rules less often."""

_ANSWERS = 16  # replies to one connection wait in memory until it reads them
_CONNECTIONS = 1024


def violation_of(error: HeronError) -> Violation:
    """The check that an error reports; an error of another class is about the contents of a message."""
    return error.violation if isinstance(error, RemoteProtocolError) else Violation.CONTENT


class Violations:
    """The violations that one process has seen.

    It belongs to the thread that reads the sockets; any thread may call `metrics`.
    """

    def __init__(self, log: logging.Logger, now_s: Callable[[], float] = monotonic_s) -> None:
        self._log = log
        self._now_s = now_s
        self._counts: Counter[tuple[str, Violation]] = Counter()
        self._begun_s = now_s()
        self._logged = 0
        self._unlogged = 0
        self._answers: OrderedDict[bytes, int] = OrderedDict()

    def note(self, link: str, violation: Violation, message: str, *, level: int = logging.ERROR) -> None:
        """Counts a violation on a link, and logs `message` unless this minute has had many.

        The first message of the next minute says how many were left out.
        """
        self._counts[link, violation] += 1
        now_s = self._now_s()
        if now_s - self._begun_s >= _PERIOD_S:
            self._begun_s, self._logged = now_s, 0
        if self._logged >= _LOGGED:
            self._unlogged += 1
            return
        self._logged += 1
        if self._unlogged:
            self._log.log(level, "%s (%d earlier violations are only counted)", message, self._unlogged)
            self._unlogged = 0
        else:
            self._log.log(level, "%s", message)

    def count(self, link: str, violation: Violation) -> None:
        """Counts a violation that no person has to know of, such as a late frame of an ended session."""
        self._counts[link, violation] += 1

    def may_answer(self, identity: bytes) -> bool:
        """Whether to send a reason to this connection: the first few times, because it may not read its replies."""
        answers = self._answers.pop(identity, 0) + 1
        self._answers[identity] = answers
        if len(self._answers) > _CONNECTIONS:
            self._answers.popitem(last=False)
        return answers <= _ANSWERS

    def total(self) -> int:
        """The number of violations so far."""
        return self._counts.total()

    def metrics(self) -> tuple[Metric, ...]:
        """One counter for each link and kind that had a violation."""
        counts = dict(self._counts)  # another thread may count meanwhile
        return tuple(
            [
                Metric(PROTOCOL_VIOLATIONS, MetricKind.COUNTER, "frames", number, {"link": link, "kind": kind.value})
                for (link, kind), number in sorted(counts.items())
            ]
        )
