"""The choice of packages that may be removed."""

from __future__ import annotations

from heron.spi.uploader import PackageEntry
from heron_cli.topologies.package_store import merged, prunable

DAY_S = 86400.0


def entry(uri: str, days: float, *, name: str = "words", whole: bool = True) -> PackageEntry:
    return PackageEntry(uri, name, 10, days * DAY_S, whole)


def test_a_package_in_use_stays_whatever_its_age() -> None:
    """A container that restarts downloads its package again, even after months."""
    assert prunable([entry("a", 99)], {"a"}, 0.0, 0) == ()
    assert prunable([entry("a", 99)], {"b"}, 0.0, 0) == (entry("a", 99),)


def test_young_packages_stay() -> None:
    """A submission in progress may have uploaded its package but not yet written the state."""
    chosen = prunable([entry("a", 6.9), entry("b", 7.0), entry("c", 8)], (), 7 * DAY_S, 0)
    assert [each.uri for each in chosen] == ["b", "c"]


def test_the_youngest_of_each_name_are_kept() -> None:
    """A user can return to an earlier version of each topology."""
    entries = [entry("a1", 3), entry("a2", 2), entry("a3", 1), entry("b1", 9, name="other")]
    assert [each.uri for each in prunable(entries, (), 0.0, 1)] == ["a2", "a1"]
    assert prunable(entries, (), 0.0, 3) == ()


def test_a_package_in_use_does_not_count_among_those_kept() -> None:
    """`--keep 1` keeps one package besides the package in use."""
    entries = [entry("a1", 3), entry("a2", 2), entry("a3", 1)]
    assert [each.uri for each in prunable(entries, {"a3"}, 0.0, 1)] == ["a1"]


def test_an_unfinished_upload_does_not_count_among_those_kept() -> None:
    """Only its age decides."""
    entries = [entry("a1", 3), entry("a2", 2), entry("a3", 1, whole=False)]
    assert [each.uri for each in prunable(entries, (), 0.0, 1)] == ["a3", "a1"]
    assert [each.uri for each in prunable(entries, (), 2 * DAY_S, 1)] == ["a1"]


def test_an_unfinished_upload_does_not_remove_the_package_of_its_uri() -> None:
    """A removal by URI removes both, so the younger age counts."""
    both = [entry("a", 10, whole=False), entry("a", 1)]
    (one,) = merged(both)
    assert (one.age_s, one.whole, one.size_bytes) == (DAY_S, True, 20)
    assert prunable(both, (), 7 * DAY_S, 0) == ()
    assert len(prunable(both[:1], (), 7 * DAY_S, 0)) == 1
