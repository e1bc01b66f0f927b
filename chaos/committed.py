"""Check the committed output of the topology ``partitions.py``. The engine takes no part in this.

The content of the output is known: the numbers of each partition, the key of each number, and so the number of lines of
each key. The files are read in the order of their checkpoints. Between two checkpoints one task has all lines of a key.
Files without a complete checkpoint are not output; a task that an update removes may leave some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heron.clock import monotonic_s

__all__ = ["KEYS", "PARTITIONS", "CommittedFlow", "CommittedVerdict", "judge_committed", "read_committed"]

PARTITIONS = 48
KEYS = 509

Records = npt.NDArray[np.void]
Indices = npt.NDArray[np.int64]

_RECORD = np.dtype([("partition", "<u2"), ("key", "<u2"), ("number", "<u4"), ("count", "<u4"), ("made_ms", "<u4")])
_EXAMPLES = 5
_LOOK_EVERY_S = 0.05  # there may be thousands of files


@dataclass(frozen=True, slots=True)
class CommittedVerdict:
    """`wrong` is the number of keys whose counts differ; `strange` lists errors in words."""

    lines: int
    lost: int
    doubled: int
    wrong: int
    out_of_order: int
    strange: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the output is exact."""
        return not (self.lost or self.doubled or self.wrong or self.out_of_order or self.strange)

    def figures(self) -> Mapping[str, object]:
        """Return what the line of JSON says about the lines."""
        return {
            "lost": self.lost,
            "doubled": self.doubled,
            "wrong": self.wrong,
            "out_of_order": self.out_of_order,
        }


def judge_committed(folder: Path) -> CommittedVerdict:
    """Read the committed files and the file ``stop``; needs about 100 bytes for each line."""
    made = int((folder / "stop").read_text(encoding="utf-8"))
    strange: list[str] = []
    records = read_committed(folder)
    known = _known(records, made)
    if unknown := len(records) - int(known.sum()):
        strange.append(f"{unknown} records of lines that no spout made")
    records = records[known]
    times = np.bincount(_lines(records, made), minlength=PARTITIONS * made)
    lost, doubled = np.flatnonzero(times == 0), np.flatnonzero(times > 1)
    wrong = _wrong_keys(records, made)
    swapped = _out_of_order(records)
    for what, found in (("lost", lost), ("doubled", doubled)):
        strange += _examples(f"{what}, as partition:line", [f"{at // made}:{at % made}" for at in found[:_EXAMPLES]])
    strange += _examples("keys with wrong counts", [str(key) for key in wrong[:_EXAMPLES]])
    strange += _examples(
        "out of order, as key:partition:line",
        [f"{each['key']}:{each['partition']}:{each['number']}" for each in swapped[:_EXAMPLES]],
    )
    return CommittedVerdict(
        len(records), len(lost), int(times[doubled].sum()) - len(doubled), len(wrong), len(swapped), tuple(strange)
    )


def read_committed(folder: Path) -> Records:
    """Return all committed records, in the order of their checkpoints."""
    paths = sorted(folder.glob("*-committed-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    return np.concatenate([np.empty(0, _RECORD), *(np.fromfile(path, _RECORD) for path in paths)])


def _known(records: Records, made: int) -> npt.NDArray[np.bool_]:
    """Return whether each record is of an existing line, and has its key."""
    expected = (records["partition"].astype(np.int64) * 7 + records["number"]) % KEYS
    known: npt.NDArray[np.bool_] = (
        (records["partition"] < PARTITIONS) & (records["number"] < made) & (records["key"] == expected)
    )
    return known


def _lines(records: Records, made: int) -> Indices:
    """Return the number of each line among the lines of all partitions."""
    lines: Indices = records["partition"].astype(np.int64) * made + records["number"]
    return lines


def _wrong_keys(records: Records, made: int) -> Indices:
    """Return the keys whose counts are not 1, 2, … up to the number of the key's lines, each once."""
    every = np.arange(PARTITIONS)[:, None] * 7 + np.arange(made)
    expected = np.bincount((every % KEYS).reshape(-1), minlength=KEYS)
    highest = int(max(expected.max(initial=0), records["count"].max(initial=0))) + 1
    times = np.bincount(records["key"].astype(np.int64) * highest + records["count"], minlength=KEYS * highest)
    counts = np.arange(highest)
    wanted = (counts >= 1) & (counts <= expected[:, None])
    wrong: Indices = np.flatnonzero((times.reshape(KEYS, highest) != wanted).any(axis=1))
    return wrong


def _out_of_order(records: Records) -> Records:
    """Return records that come after a higher count of their key, or a higher number of their key and partition."""
    late = np.zeros(len(records), np.bool_)
    key, partition = records["key"].astype(np.int64), records["partition"].astype(np.int64)
    for groups, values in ((key, records["count"]), (key * PARTITIONS + partition, records["number"])):
        order = np.argsort(groups, kind="stable")
        same = groups[order][1:] == groups[order][:-1]
        late[order[1:][same & (values[order][1:] < values[order][:-1])]] = True
    found: Records = records[late]
    return found


def _examples(what: str, found: list[str]) -> list[str]:
    return [f"{what}: {', '.join(found)}"] if found else []


class CommittedFlow:
    """The progress of the output, read from outside while the topology runs. It has no parts."""

    everything = ("output",)

    def __init__(self, folder: Path, began_s: float) -> None:
        self._folder = folder
        self._began_s = began_s
        self._look_at_s = began_s
        self._seen: set[str] = set()
        self._made_ms = np.zeros(PARTITIONS, np.uint32)

    def made(self) -> tuple[int, ...]:
        """Return the present time, with which `has_passed` compares: the milliseconds since the begin of the run."""
        return (int((monotonic_s() - self._began_s) * 1000),)

    def life(self, task: str) -> int:
        """Return 0: the output does not show which process has written it."""
        del task
        return 0

    def has_passed(self, task: str, lines: tuple[int, ...]) -> bool:
        """Return whether a line of each partition that was made after `lines` is committed."""
        del task
        if monotonic_s() >= self._look_at_s:
            self._look_at_s = monotonic_s() + _LOOK_EVERY_S
            self._look()
        return int(self._made_ms.min()) > lines[0]

    def _look(self) -> None:
        for path in self._folder.glob("*-committed-*"):
            if path.name not in self._seen:
                self._seen.add(path.name)
                records = np.fromfile(path, _RECORD)
                np.maximum.at(self._made_ms, records["partition"], records["made_ms"])
