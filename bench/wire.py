"""The bytes that the links of a run carry per tuple, from the metrics of the stream managers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.records import BenchError

__all__ = ["bytes_per_tuple"]

_COUNTERS = frozenset({"bytes-from-instances", "bytes-to-instances", "bytes-to-peers", "ack-bytes"})


def bytes_per_tuple(files: Iterable[Path], until_s: float, count_at: Callable[[float], float]) -> float:
    """Return the sum over all stream managers, each up to its last report before `until_s` (monotonic seconds).

    Raises:
        BenchError: when a stream manager has not reported by then.
    """
    ahead_s = time.time() - time.monotonic()
    total = 0.0
    for path in files:
        reports = _stream_manager_reports(path)
        in_time = [(at_s - ahead_s, size) for at_s, size in reports if at_s - ahead_s <= until_s]
        if reports and not in_time:
            msg = f"{path.name}: the stream manager has not reported in time"
            raise BenchError(msg)
        if in_time:
            at_s, size = in_time[-1]
            total += size / max(1.0, count_at(at_s))
    return total


def _stream_manager_reports(path: Path) -> list[tuple[float, float]]:
    """Return ``(wall-clock seconds, bytes so far)``, in order."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [
        (record["at_s"], sum(each["value"] for each in record["metrics"] if each["name"] in _COUNTERS))
        for record in records
        if record["source"]["process"] == "stmgr"
    ]
