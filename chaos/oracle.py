"""Determine the fate of every line from the files of the run. The engine takes no part in this.

A line is lost if one of its parts is in no journal. A part that is in the journals more than once needs an explanation
for each further copy. There are two: its attempt is later, and the spout was told that the attempt before had failed;
or its life of the spout is later, and began at or before that line. All other copies are unexplained.

If the bolts counted the parts of each key in state, a count is wrong if it is less than the parts of the key, or more
than its records in the journals.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["KEYS", "Verdict", "judge"]

Tags = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint8]

_PARTS = 2
_CHUNK_TAGS = 1_000_000
_EXAMPLES = 5
_APART = 500
KEYS = 1009


@dataclass(frozen=True, slots=True)
class Verdict:
    """Duplicates are parts of lines; `strange` lists errors in words.

    `wrong` is the number of keys whose counts in state are wrong; None without state.
    """

    lines: int
    lost: int
    by_failed_trees: int
    by_lives: int
    unexplained: int
    strange: tuple[str, ...]
    wrong: int | None = None

    @property
    def duplicates(self) -> int:
        """Return the number of all duplicates."""
        return self.by_failed_trees + self.by_lives + self.unexplained

    @property
    def passed(self) -> bool:
        """Whether no line was lost, and each duplicate has a reason."""
        return not (self.lost or self.unexplained or self.strange or self.wrong)

    def figures(self) -> Mapping[str, object]:
        """Return what the line of JSON says about the lines."""
        return {
            "lost": self.lost,
            **({} if self.wrong is None else {"wrong": self.wrong}),
            "duplicates": self.duplicates,
            "duplicates_of": {
                "failed trees": self.by_failed_trees,
                "lives of spouts": self.by_lives,
                "unexplained": self.unexplained,
            },
        }


def judge(folder: Path) -> Verdict:
    """Read all files, a million records at a time; needs two bytes for each line, and the memory of the duplicates."""
    made = [int(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("position-?"))]
    strange = [line for path in sorted(folder.glob("strange-*")) for line in path.read_text("utf-8").splitlines()]
    counts = np.zeros((len(made), max(made, default=0), _PARTS), np.uint8)
    unknown = 0
    for tags in _chunks(folder, "journal-*"):
        known = tags[_existing(tags, made)]
        unknown += len(tags) - len(known)
        places, times = np.unique(_places(known, counts), return_counts=True)
        counts.reshape(-1)[places] += times.astype(np.uint8)  # no part occurs 256 times
    if unknown:
        strange.append(f"{unknown} records of lines that no spout made")
    lost = [f"{spout}:{line}" for spout, lines in enumerate(made) for line in _missing(counts[spout, :lines])]
    if lost:
        strange.append(f"lost, as spout:line: {', '.join(lost[:_EXAMPLES])}{' …' if len(lost) > _EXAMPLES else ''}")
    several = [np.empty(0, np.uint64)]
    for tags in _chunks(folder, "journal-*"):
        known = tags[_existing(tags, made)]
        several.append(known[counts.reshape(-1)[_places(known, counts)] > 1])
    explained, examples = _explained(folder, np.concatenate(several), counts)
    wrong = _wrong_counts(folder, made) if any(folder.glob("counts-*")) else None
    return Verdict(sum(made), len(lost), *explained, (*strange, *examples), wrong)


def _wrong_counts(folder: Path, made: Sequence[int]) -> int:
    """Return the number of keys whose count in state is not between the parts and the records of the key."""
    least, most, counts = (np.zeros(KEYS, np.int64) for _ in range(3))
    for lines in made:
        for part in range(_PARTS):
            least += np.bincount((np.arange(lines) + part * _APART) % KEYS, minlength=KEYS)
    for tags in _chunks(folder, "journal-*"):
        keys = (_lines(tags).astype(np.int64) + _parts(tags) * _APART) % KEYS
        most += np.bincount(keys, minlength=KEYS)
    for path in folder.glob("counts-*"):
        for key, count in json.loads(path.read_text(encoding="utf-8")).items():
            counts[int(key)] += count
    return int(((counts < least) | (counts > most)).sum())


def _explained(folder: Path, tags: Tags, counts: Counts) -> tuple[tuple[int, int, int], list[str]]:
    """Return the number of duplicates by reason (failed trees, lives, unexplained), with examples of the last."""
    tags = tags[np.lexsort((_attempts(tags), _lives(tags), _places(tags, counts)))]
    further = np.flatnonzero(_places(tags[1:], counts) == _places(tags[:-1], counts)) + 1
    tags, before = tags[further], tags[further - 1]
    new = tags != before
    replayed = new & (_attempts(tags) > 0) & np.isin(_failed_tags(tags), np.concatenate([*_chunks(folder, "failed-*")]))
    begun = new & (_attempts(tags) == 0) & (_lives(tags) > 0) & (_lines(tags) >= _starts(folder, tags))
    rest = tags[~replayed & ~begun]
    examples = [
        f"line {_lines(tag)} of spout {_spouts(tag)} came again in life {_lives(tag)}, attempt {_attempts(tag)}: why?"
        for tag in rest[:_EXAMPLES]
    ]
    return (int(replayed.sum()), int(begun.sum()), len(rest)), examples


def _existing(tags: Tags, made: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return whether each record is of an existing line."""
    lines = np.zeros(16, np.uint64)
    lines[: len(made)] = made
    known: npt.NDArray[np.bool_] = (_lines(tags) < lines[_spouts(tags)]) & (_parts(tags) < _PARTS)
    return known


def _missing(counts: Counts) -> list[int]:
    missing: list[int] = np.flatnonzero(counts.min(axis=1) == 0).tolist()
    return missing


def _starts(folder: Path, tags: Tags) -> Tags:
    """Return the line at which the life of each record began."""
    found = np.zeros(len(tags), np.uint64)
    for spout, path in enumerate(sorted(folder.glob("lives-?"))):
        starts = [int(line.split()[0]) for line in path.read_text(encoding="utf-8").splitlines()]
        own = _spouts(tags) == spout
        found[own] = np.asarray(starts, np.uint64)[_lives(tags[own])]
    return found


def _failed_tags(tags: Tags) -> Tags:
    """Return the tag that the spout writes when the attempt before fails: without the part."""
    return (tags & ~np.uint64(0xF << 36)) - np.uint64(1 << 52)


def _chunks(folder: Path, pattern: str) -> Iterator[Tags]:
    yield np.empty(0, np.uint64)
    for path in sorted(folder.glob(pattern)):
        with path.open("rb") as file:
            while len(tags := np.fromfile(file, "<u8", _CHUNK_TAGS)):
                yield tags


def _places(tags: Tags, counts: Counts) -> npt.NDArray[np.int64]:
    """Return the index of each record in the counts."""
    lines = _spouts(tags) * counts.shape[1] + _lines(tags).astype(np.int64)
    places: npt.NDArray[np.int64] = lines * _PARTS + _parts(tags)
    return places


def _lines(tags: Tags) -> Tags:
    return tags & np.uint64(0xFFFF_FFFF)


def _spouts(tags: Tags) -> npt.NDArray[np.int64]:
    return (tags >> np.uint64(32) & np.uint64(15)).astype(np.int64)


def _parts(tags: Tags) -> npt.NDArray[np.int64]:
    return (tags >> np.uint64(36) & np.uint64(15)).astype(np.int64)


def _lives(tags: Tags) -> npt.NDArray[np.int64]:
    return (tags >> np.uint64(40) & np.uint64(0xFFF)).astype(np.int64)


def _attempts(tags: Tags) -> npt.NDArray[np.int64]:
    return (tags >> np.uint64(52)).astype(np.int64)
