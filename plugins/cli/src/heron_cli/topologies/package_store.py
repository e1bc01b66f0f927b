"""The stored packages of a profile, the topologies that use them, and the packages that may be removed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from heron.errors import PackageError, StateConflictError, StateError, StateUnavailableError, UsageError
from heron.spi.statemgr import NodeKind, StateManager
from heron.spi.uploader import LATEST, PackageEntry, Uploader
from heron_cli.topologies.run_nodes import is_name, read_run

__all__ = ["PackageStore", "PruneResult", "StoredPackage", "find_package", "merged", "prunable", "split_reference"]

_VERSION = re.compile(r"[0-9a-f]{8,64}")


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
    """The packages of one uploader, and the topologies of one state manager that use them.

    `check_writable` gets what is about to change, and raises AccessError when it must not.
    """

    def __init__(self, statemgr: StateManager, uploader: Uploader, check_writable: Callable[[str], None]) -> None:
        self._statemgr = statemgr
        self._uploader = uploader
        self._check_writable = check_writable

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
        if not dry_run:
            self._check_writable("a removal of packages")
        chosen = prunable(self._uploader.packages(), self._in_use(), older_than_s, keep)
        failed = {} if dry_run else self._remove(chosen)
        if not dry_run and len(failed) < len(chosen):
            failed |= self._kept(each.uri for each in chosen if each.uri not in failed)
        return PruneResult(tuple(each for each in chosen if each.uri not in failed), failed)

    def find(self, reference: str) -> StoredPackage:
        """Return the package that `find_package` finds, with all its tags and the topology that uses it.

        Raises:
            UsageError: also when the package was removed meanwhile. Else as `packages` and `find_package`.
        """
        uri = find_package(self._uploader, reference).uri
        for each in self.packages():
            if each.package.uri == uri:
                return each
        msg = f"package {reference}: was removed meanwhile; `heron packages list` shows what there is"
        raise UsageError(msg)

    def tag(self, reference: str, tag: str) -> PackageEntry:
        """Let a tag of the name mean the package from now on; return the package.

        Raises:
            UsageError: also when another command is at work on the topology. Else as `find_package`.
        """
        self._check_writable(f"tag {tag!r:.80}")
        with self._held(split_reference(reference)[0], b"heron packages tag"):
            found = find_package(self._uploader, reference)
            self._uploader.tag(found.uri, tag)
        return found

    def untag(self, reference: str) -> None:
        """Remove the tag ``NAME:TAG``; its package stays. A missing tag is not an error. Raises as `tag` does."""
        self._check_writable(f"tag {reference!r:.80}")
        name, tag = split_reference(reference)
        with self._held(name, b"heron packages untag"):
            self._uploader.untag(name, tag)

    def _in_use(self) -> dict[str, str]:
        used: dict[str, str] = {}
        for topology in self._statemgr.list(NodeKind.EXECUTION_STATE):
            used |= dict.fromkeys(self._used_by(topology), topology)
        return used

    def _used_by(self, topology: str) -> tuple[str, ...]:
        """Return the URIs of the packages of a topology. A topology that is unknown has none."""
        run = read_run(self._statemgr, topology)
        return tuple(filter(None, (run.package_uri, *run.more_packages))) if run else ()

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

    def _kept(self, uris: Iterable[str]) -> dict[str, str]:
        """Return which of these packages are there still: a store may keep what a command removes."""
        try:
            there = {each.uri for each in self._uploader.packages()}
        except PackageError as error:
            return dict.fromkeys(uris, f"whether it was removed is unknown: {error}")
        return {each: "its store keeps it, see the settings of the uploader" for each in uris if each in there}

    def _remove_one(self, entry: PackageEntry) -> str:
        """Remove it, or return which topology needs it."""
        try:
            with self._held(entry.name, b"heron packages prune"):
                if is_name(entry.name) and entry.uri in self._used_by(entry.name):
                    return f"topology {entry.name!r} uses it now"
                self._uploader.undo(entry.uri)
        except UsageError as error:
            return str(error)
        return ""

    @contextmanager
    def _held(self, name: str, owner: bytes) -> Iterator[None]:
        """Hold the lock of the topology with this name, if a topology can have it.

        A submission holds it from before the upload until the state names the package, and the end of a topology while
        it removes the package.
        """
        if not is_name(name):
            yield
            return
        try:
            hold = self._statemgr.hold(NodeKind.LOCK, name, owner)
        except StateConflictError as error:
            msg = f"another command is at work on topology {name!r}; try again later"
            raise UsageError(msg) from error
        try:
            yield
        finally:
            hold.release()


def split_reference(reference: str) -> tuple[str, str]:
    """Return the name and the tag or version of ``NAME:TAG`` or ``NAME:VERSION``.

    Raises:
        UsageError: when the reference has another form.
    """
    name, _, tag = reference.partition(":")
    if not name or not tag:
        msg = (
            f"package {reference!r:.80}: is not of the form NAME:TAG or NAME:VERSION; `heron packages list` shows both"
        )
        raise UsageError(msg)
    return name, tag


def find_package(uploader: Uploader, reference: str) -> PackageEntry:
    """Return the package of ``NAME:TAG``, or of ``NAME:VERSION`` with the first 8 digits of the version or more.

    Raises:
        UsageError: when the reference has another form, or no or several packages have the version.
        PackageError: when there is no such tag, or the uploader has no tags.
    """
    name, tag = split_reference(reference)
    if not _VERSION.fullmatch(tag):
        return uploader.tagged(name, tag)
    named = [each for each in uploader.packages() if each.name == name and each.version]
    found = [each for each in named if each.version.startswith(tag)]
    if len(found) != 1:
        there = ", ".join(sorted(each.version[:12] for each in (found or named))) or "none"
        how = "several versions begin so" if found else "there is no such version"
        msg = f"package {reference}: {how}; versions of {name!r}: {there}"
        raise UsageError(msg)
    return found[0]


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
    """Return the unused packages that are old enough, except the `keep` youngest whole packages of each name.

    Packages with a tag are left out; `LATEST` does not count, because it moves with each upload.
    """
    kept: defaultdict[str, int] = defaultdict(int)
    found = []
    for each in merged(entries):
        if each.uri in in_use or set(each.tags) - {LATEST}:
            continue
        kept[each.name] += each.whole
        if each.age_s >= older_than_s and not (each.whole and kept[each.name] <= keep):
            found.append(each)
    return tuple(found)
