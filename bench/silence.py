"""What the bolts at the end of `live_state.py` record: counts, the longest time without a tuple, and latencies."""

from __future__ import annotations

import mmap
import struct
from array import array
from pathlib import Path

from bench.trial import Trial

__all__ = ["Silence", "late_ms"]

_NUMBERS = struct.Struct("=ddq")
_START_WITHIN_S = 60.0


class Silence:
    """The shared memory of one bolt. It outlives the processes of the bolt."""

    def __init__(self, trial: Trial, component: str) -> None:
        """Wait until the bolt has processed a tuple."""
        path = trial.records.folder / f"{component}.silence"
        trial.wait_until(lambda _: path.exists() and path.stat().st_size == _NUMBERS.size, _START_WITHIN_S)
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _NUMBERS.size)
        trial.wait_until(lambda _: self.count() > 0, _START_WITHIN_S)

    def count(self) -> int:
        """Return the number of tuples so far, those that came again after a restore included."""
        return int(_NUMBERS.unpack_from(self._shared)[2])

    def last_s(self) -> float:
        """Return when the last tuple came, in monotonic seconds."""
        return float(_NUMBERS.unpack_from(self._shared)[0])

    def begin(self) -> None:
        """Forget the longest time so far. A tuple that comes at this moment may bring it back: look again."""
        last_s, _, count = _NUMBERS.unpack_from(self._shared)
        _NUMBERS.pack_into(self._shared, 0, last_s, 0.0, count)

    def longest_s(self) -> float:
        """Return the longest time without a tuple since `begin`."""
        return float(_NUMBERS.unpack_from(self._shared)[1])


def late_ms(folder: Path, start_s: float, end_s: float) -> list[float]:
    """Return how late the tuples of this time were, ascending, in milliseconds."""
    values = array("d")
    data = (folder / "last.late").read_bytes()
    values.frombytes(data[: len(data) // 16 * 16])
    pairs = zip(values[::2], values[1::2], strict=True)
    return sorted(late_s * 1e3 for due_s, late_s in pairs if start_s <= due_s < end_s)
