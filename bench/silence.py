"""What the bolts at the end of `live_state.py` record: counts, the longest time without a tuple, and latencies."""

from __future__ import annotations

import mmap
from array import array
from pathlib import Path

from bench.trial import Trial

__all__ = ["Silence", "late_ms"]

_BYTES = 24
_LAST, _LONGEST, _COUNT = range(3)  # doubles; a larger record would be read while it is half written
_START_WITHIN_S = 60.0


class Silence:
    """The shared memory of one bolt. It outlives the processes of the bolt."""

    def __init__(self, trial: Trial, component: str) -> None:
        """Wait until the bolt has processed a tuple."""
        path = trial.records.folder / f"{component}.silence"
        trial.wait_until(lambda _: path.exists() and path.stat().st_size == _BYTES, _START_WITHIN_S)
        with path.open("r+b") as file:
            self._shared = memoryview(mmap.mmap(file.fileno(), _BYTES)).cast("d")
        trial.wait_until(lambda _: self.count() > 0, _START_WITHIN_S)

    def count(self) -> int:
        """Return the number of tuples so far, those that came again after a restore included."""
        return int(self._shared[_COUNT])

    def last_s(self) -> float:
        """Return when the last tuple came, in monotonic seconds."""
        return self._shared[_LAST]

    def begin(self) -> None:
        """Forget the longest time so far. A tuple that comes at this moment may bring it back: look again."""
        self._shared[_LONGEST] = 0.0

    def longest_s(self) -> float:
        """Return the longest time without a tuple since `begin`."""
        return self._shared[_LONGEST]


def late_ms(folder: Path, start_s: float, end_s: float) -> list[float]:
    """Return how late the tuples of this time were, ascending, in milliseconds."""
    values = array("d")
    data = (folder / "last.late").read_bytes()
    values.frombytes(data[: len(data) // 16 * 16])
    pairs = zip(values[::2], values[1::2], strict=True)
    return sorted(late_s * 1e3 for due_s, late_s in pairs if start_s <= due_s < end_s)
