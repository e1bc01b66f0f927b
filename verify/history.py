"""How many commits a suite is behind: since when no run of it tells about the present code."""

from __future__ import annotations

import subprocess
from collections.abc import Set
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from verify.records import Record

__all__ = ["Commit", "History", "read_history"]

_MOST = 500  # commits that are read; a suite is never allowed to be as far behind


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of the main line: when it was made, in seconds since 1970, and the files that it changed."""

    revision: str
    when_s: int
    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class History:
    """The commits of the main line, the newest first, and the files that are changed and not committed."""

    commits: list[Commit] = field(default_factory=list)
    uncommitted: frozenset[str] = frozenset()

    @property
    def head(self) -> str:
        """The present revision; empty where there is no repository."""
        return self.commits[0].revision if self.commits else ""

    def age(self, record: Record) -> int:
        """How many commits were made since a run; by its time, if its revision is not on the main line."""
        for count, commit in enumerate(self.commits):
            if commit.revision == record.revision:
                return count
        ran_s = datetime.fromisoformat(record.when).timestamp()
        return sum(commit.when_s > ran_s for commit in self.commits)

    def behind(self, record: Record, inputs: Set[str]) -> int:
        """How many commits ago, after a run, the first of these inputs changed: the run tells about all before.

        If none of the commits changed one, as when an input was removed, the answer is the age of the run.
        """
        age = self.age(record)
        for count in range(age, 0, -1):
            if not self.commits[count - 1].files.isdisjoint(inputs):
                return count
        return age if self.uncommitted.isdisjoint(inputs) else 0


def read_history(root: Path) -> History:
    """Reads the history of a repository; of a folder that is none it is empty."""
    log = ("log", "--first-parent", "-m", "--name-only", f"--max-count={_MOST}", "--format=%x00%H %ct")
    written = _git(root, *log).split("\0")[1:]
    commits = []
    for each in written:
        title, _, files = each.partition("\n")
        revision, _, when_s = title.partition(" ")
        commits.append(Commit(revision, int(when_s), frozenset(filter(None, files.splitlines()))))
    return History(commits, frozenset(_git(root, "diff", "--name-only", "HEAD").splitlines()))


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "core.quotePath=off", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""
