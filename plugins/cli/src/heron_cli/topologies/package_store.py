"""The stored packages of a profile, the topologies that use them, and the packages that may be removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from heron.errors import PackageError, StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import NodeKind, StateManager
from heron.spi.uploader import PackageEntry, Uploader
from heron_cli.topologies.run_nodes import is_name, read_run

__all__ = ["PackageStore", "PruneResult", "StoredPackage", "merged", "prunable"]


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """A stored package, and the topology that uses it ("": none)."""

    package: PackageEntry
    topology: str = ""


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The packages that were removed (of a dry run: would be), and why others could not be, by URI."""

    removed: tuple[PackageEntry, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


class PackageStore:
    """The packages of one uploader, and the topologies of one state manager that use them."""

    def __init__(self, statemgr: StateManager, uploader: Uploader) -> None:
        self._statemgr = statemgr
        self._uploader = uploader

    def packages(self) -> tuple[StoredPackage, ...]:
        """Return the stored packages, youngest first.

        Raises:
            StateError: when the state of a topology cannot be read, so the package that it uses is unknown.
            PackageError: when the uploader cannot list its packages.
        """
        used = self._in_use()
        return tuple(StoredPackage(each, used.get(each.uri, "")) for each in merged(self._uploader.packages()))

    def prune(self, older_than_s: float, keep: int, *, dry_run: bool = False) -> PruneResult:
        """Remove the packages that no topology uses, as `prunable` chooses them. Raises as `packages` does."""
        chosen = prunable(self._uploader.packages(), self._in_use(), older_than_s, keep)
        failed = {} if dry_run else self._remove(chosen)
        return PruneResult(tuple(each for each in chosen if each.uri not in failed), failed)

    def _in_use(self) -> dict[str, str]:
        used = {}
        for topology in self._statemgr.list(NodeKind.EXECUTION_STATE):
            if uri := self._used_by(topology):
                used[uri] = topology
        return used

    def _used_by(self, topology: str) -> str:
        """Return the URI of its package, or "" when there is no such topology."""
        run = read_run(self._statemgr, topology)
        return run.package_uri if run else ""

    def _remove(self, chosen: tuple[PackageEntry, ...]) -> dict[str, str]:
        """Remove them one by one; return by URI why some could not be removed."""
        failed = {}
        unavailable = ""
        for each in chosen:
            try:
                if reason := unavailable or self._remove_one(each):
                    failed[each.uri] = reason
            except StateUnavailableError as error:
                unavailable = failed[each.uri] = str(error)  # nor would it answer for the packages that follow
            except (StateError, PackageError) as error:
                failed[each.uri] = str(error)
        return failed

    def _remove_one(self, entry: PackageEntry) -> str:
        """Remove it, or return which topology needs it."""
        if not is_name(entry.name):  # no topology can have this name
            self._uploader.undo(entry.uri)
            return ""
        try:
            # A command that submits this topology holds its lock from before the upload until the state names it.
            hold = self._statemgr.hold(NodeKind.LOCK, entry.name, b"heron packages prune")
        except StateConflictError:
            return f"another command is at work on topology {entry.name!r}; try again later"
        try:
            if self._used_by(entry.name) == entry.uri:
                return f"topology {entry.name!r} uses it now"
            self._uploader.undo(entry.uri)
        finally:
            hold.release()
        return ""


def merged(entries: Iterable[PackageEntry]) -> tuple[PackageEntry, ...]:
    """Return one entry for each URI, youngest first: the parts of an unfinished upload belong to its package."""
    found: dict[str, PackageEntry] = {}
    for each in entries:
        if other := found.get(each.uri):
            found[each.uri] = replace(
                each,
                size_bytes=each.size_bytes + other.size_bytes,
                age_s=min(each.age_s, other.age_s),
                whole=each.whole or other.whole,
            )
        else:
            found[each.uri] = each
    return tuple(sorted(found.values(), key=lambda each: (each.age_s, each.uri)))


def prunable(
    entries: Iterable[PackageEntry], in_use: Collection[str], older_than_s: float, keep: int
) -> tuple[PackageEntry, ...]:
    """Return the unused packages that are old enough, except the `keep` youngest whole packages of each name."""
    kept: defaultdict[str, int] = defaultdict(int)
    found = []
    for each in merged(entries):
        if each.uri in in_use:
            continue
        kept[each.name] += each.whole
        if each.age_s >= older_than_s and not (each.whole and kept[each.name] <= keep):
            found.append(each)
    return tuple(found)
