"""What became of the connections to a socket that listens on the network. Pure.

ZeroMQ says when a connection is accepted and closed, and which file descriptor it has; that a handshake succeeded or
failed it says without naming the connection, and of a peer that does not speak ZeroMQ at all it says neither. So the
last kind is what is left: accepted, not succeeded, not failed in any named way, and not at it any more. A connection
that is open and younger than the longest handshake may be at it: it is not counted until it is closed or older.
"""

from __future__ import annotations

from collections import Counter

__all__ = ["Handshakes"]


class Handshakes:
    """Counts; times are monotonic seconds."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._accepted = 0
        self._succeeded = 0
        self._failed: Counter[str] = Counter()
        self._foreign = 0
        self._young: dict[int, float] = {}

    def accepted(self, descriptor: int, now_s: float) -> None:
        """A connection was made."""
        self._accepted += 1
        self._young[descriptor] = now_s

    def succeeded(self) -> None:
        """One of the connections has proved its key."""
        self._succeeded += 1

    def failed(self, reason: str) -> None:
        """One of the connections is refused."""
        self._failed[reason] += 1

    def disconnected(self, descriptor: int) -> None:
        """A connection is closed."""
        self._young.pop(descriptor, None)

    def refused(self, now_s: float) -> dict[str, int]:
        """How many did not get in, by reason; ``foreign`` does not speak the protocol at all."""
        self._young = {each: at_s for each, at_s in self._young.items() if now_s - at_s < self._longest_s}
        open_or_in = self._succeeded + self._failed.total() + len(self._young)
        self._foreign = max(self._foreign, self._accepted - open_or_in)
        reasons = dict.fromkeys(("unknown-key", "protocol", "unfinished"), 0) | self._failed
        return reasons | {"foreign": self._foreign}
