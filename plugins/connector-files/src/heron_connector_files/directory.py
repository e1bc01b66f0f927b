"""Which files of a directory belong to which log, and in which order they were written.

The names decide. ``app.log.2.gz``, ``app.log-20261129`` and ``app.log.1`` are rotated files of ``app.log``, if the
pattern of the source matches ``app.log``. So a log exists also in the moment in which a rotation has renamed its file
and not yet created the next one.

If the pattern matches ``worker-1`` as well as ``worker``, then ``worker-1`` is a log, unless there is, or was, a log
``worker``. A link to another file of the logs is that file: it counts once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from heron.errors import ConnectorError
from heron_connector_files.content import remedy_of

__all__ = ["Entry", "families", "listed"]

_GZ = ".gz"
_BEFORE_SUFFIX = re.compile(r"[.-](?=\d)")
_SUFFIX = re.compile(r"\d+(?:[-._T:]?\d+)*")
_DIGITS = re.compile(r"\d+")
_LISTINGS = 100
"""A rotation renames for a moment; listings that differ for so long are of a directory that does not rest."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a log. `suffix` is what its rotation has added to the name; empty for the file that is written."""

    name: str
    suffix: str
    is_gz: bool
    device: int
    inode: int
    modified_ns: int
    size: int

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode


class Listed(NamedTuple):
    """A name in a directory: what it leads to, and whether it is a symbolic link."""

    stat: os.stat_result
    is_link: bool


def listed(directory: Path, prefix: str = "") -> dict[str, Listed]:
    """The regular files of a directory whose names begin with the prefix.

    A listing during a rotation may lack a file that is renamed meanwhile. So two successive listings must be equal.

    Raises:
        ConnectorError: when the directory cannot be read, or changes during all listings.
    """
    former: set[tuple[str, int]] | None = None
    for _ in range(_LISTINGS):
        found: dict[str, Listed] = {}
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    try:
                        if entry.name.startswith(prefix) and entry.is_file():
                            found[entry.name] = Listed(entry.stat(), entry.is_symlink())
                    except FileNotFoundError:
                        continue  # renamed or removed meanwhile: the next listing differs
        except OSError as error:
            remedy = remedy_of(error, "create it, or permit the user of the task to read it")
            msg = f"the directory of logs cannot be read: {error}; {remedy}"
            raise ConnectorError(msg) from error
        names = {(name, each.stat.st_ino) for name, each in found.items()}
        if names == former:
            return found
        former = names
    msg = f"{directory}: {_LISTINGS} successive listings differ; give the logs a directory of their own"
    raise ConnectorError(msg)


def families(files: Mapping[str, Listed], pattern: str, known: Collection[str] = ()) -> dict[str, list[Entry]]:
    """The files of each log, the oldest first. `known` are logs that were there before.

    A file that is there plain and compressed counts as the plain one.
    """
    owners: dict[tuple[int, int], str] = {}
    found: dict[str, list[Entry]] = {}
    for name, (stat, _) in sorted(files.items(), key=lambda each: (each[1].is_link, each[0])):
        plain = name.removesuffix(_GZ)
        is_gz = plain != name
        if (is_gz and plain in files) or (parts := _parts(name, pattern, files, known)) is None:
            continue
        log, suffix = parts
        entry = Entry(name, suffix, is_gz, stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if owners.setdefault(entry.identity, log) == log:
            found.setdefault(log, []).append(entry)
    return {log: _sorted(entries) for log, entries in found.items()}


def _parts(name: str, pattern: str, files: Mapping[str, Listed], known: Collection[str]) -> tuple[str, str] | None:
    """The log of a file, and what its rotation has added; None if the file belongs to no log."""
    plain = name.removesuffix(_GZ)
    cuts = [(plain[: each.start()], plain[each.end() :]) for each in _BEFORE_SUFFIX.finditer(plain) if each.start()]
    cuts = [(log, suffix) for log, suffix in cuts if _SUFFIX.fullmatch(suffix) and fnmatchcase(log, pattern)]

    def is_log(log: str) -> bool:
        return log in known or (log in files and _parts(log, pattern, files, known) == (log, ""))

    cut = next((each for each in reversed(cuts) if is_log(each[0])), None)
    if plain == name and fnmatchcase(name, pattern) and (name in known or cut is None):
        return name, ""
    return cut or (cuts[0] if cuts else None)


def _sorted(entries: Sequence[Entry]) -> list[Entry]:
    """The oldest first: dates, then numbers, at last the one that is written.

    The time of the last write may be that of a late line, so it orders only dates of different forms.
    """
    groups = {each.suffix: _DIGITS.findall(each.suffix) for each in entries if each.suffix}
    numbers = {each for each in groups if each.isdigit() and len(each) < len("20260101")}
    forms = {(len(groups[each]), len(groups[each][0])) for each in groups.keys() - numbers}

    def age(entry: Entry) -> tuple[int, int, list[int]]:
        if not entry.suffix:
            return (2, 0, [])
        if entry.suffix in numbers:
            return (1, -int(entry.suffix), [])
        return (0, entry.modified_ns if len(forms) > 1 else 0, [*map(int, groups[entry.suffix])])

    last = {each.identity: each for each in sorted(entries, key=age)}  # a link to a dated file counts, not its date
    return sorted(last.values(), key=age)
