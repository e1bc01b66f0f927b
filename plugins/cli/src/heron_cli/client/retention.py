"""Which stored packages may go: pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

from heron.spi.uploader import PackageEntry

__all__ = ["merged", "prunable"]


def merged(entries: Iterable[PackageEntry]) -> tuple[PackageEntry, ...]:
    """One entry for each URI, youngest first: what an unfinished upload left goes with the package of its URI."""
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
    """The packages that no topology uses, older than that, without the `keep` youngest whole ones of each name."""
    kept: defaultdict[str, int] = defaultdict(int)
    found = []
    for each in merged(entries):
        if each.uri in in_use:
            continue
        kept[each.name] += each.whole
        if each.age_s >= older_than_s and not (each.whole and kept[each.name] <= keep):
            found.append(each)
    return tuple(found)
