"""Records of green runs: one small file for each suite, committed with the tree that they are about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

__all__ = ["Record", "Records"]


@dataclass(frozen=True, slots=True)
class Record:
    """A green run of a suite: of which inputs, when (UTC), how long, and on which versions.

    `revision` is the commit at which it ran; older records have none.
    """

    suite: str
    key: str
    when: str
    seconds: float
    passed: int
    skipped: int
    python: str
    platform: str
    servers: dict[str, str]
    libraries: dict[str, str]
    inputs: dict[str, str]
    revision: str = ""


class Records:
    """The files ``SUITE.json`` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> dict[str, Record]:
        """The records by suite. A file that is no record counts as absent, so that its suite runs."""
        found = {}
        for path in sorted(self._folder.glob("*.json")):
            try:
                record = msgspec.json.decode(path.read_bytes(), type=Record)
            except msgspec.DecodeError:
                continue
            if record.suite == path.stem:
                found[record.suite] = record
        return found

    def write(self, record: Record) -> None:
        """Replaces the record of a suite."""
        self._folder.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(record, order="sorted"), indent=2) + b"\n"
        (self._folder / f"{record.suite}.json").write_bytes(text)

    def remove_others(self, suites: set[str]) -> list[str]:
        """Removes the files of suites that are no more; returns their names."""
        others = [path for path in sorted(self._folder.glob("*.json")) if path.stem not in suites]
        for path in others:
            path.unlink()
        return [path.stem for path in others]
