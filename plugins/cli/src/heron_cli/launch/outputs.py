"""Follows what the instances print: one file per task in the run's log directory, complete lines only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outputs"]

_CHUNK_BYTES = 1 << 20
_LINE_BYTES = 1 << 16  # a line without an end is passed on in pieces of this size


@dataclass(slots=True)
class _File:
    prefix: str
    offset: int = 0
    rest: bytes = b""


class Outputs:
    """The lines of all tasks since the last call, in the order of each task's own."""

    def __init__(self, log_dir: Path, parallelism: Mapping[str, int]) -> None:
        self._log_dir = log_dir
        self._parallelism = parallelism
        self._files: dict[Path, _File] = {}

    def lines(self, *, final: bool = False) -> Iterator[str]:
        """New lines; with `final`, also the last line of each task that has no end."""
        for path in sorted(self._log_dir.glob("*.out")):
            component, _, task = path.stem.rpartition("-")
            if component not in self._parallelism:
                continue  # what the engine's own processes say is for their logs
            if path not in self._files:
                several = self._parallelism[component] > 1
                self._files[path] = _File(f"{component}/{task} | " if several else "")
            yield from _read(path, self._files[path], final=final)


def _read(path: Path, file: _File, *, final: bool) -> Iterator[str]:
    try:
        with path.open("rb") as stream:
            if path.stat().st_size < file.offset:
                file.offset = 0  # a new attempt began the file anew
            stream.seek(file.offset)
            while chunk := stream.read(_CHUNK_BYTES):
                file.offset += len(chunk)
                *whole, file.rest = (file.rest + chunk).split(b"\n")
                yield from (file.prefix + _text(line) for line in whole)
                if len(file.rest) > _LINE_BYTES:
                    yield file.prefix + _text(file.rest)
                    file.rest = b""
    except FileNotFoundError:
        return
    if final and file.rest:
        yield file.prefix + _text(file.rest)
        file.rest = b""


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace").rstrip("\r")
