"""Which packages may go."""

from __future__ import annotations

from heron.spi.uploader import PackageEntry
from heron_cli.topologies.package_store import merged, prunable

DAY_S = 86400.0


def entry(uri: str, days: float, *, name: str = "words", whole: bool = True) -> PackageEntry:
    return PackageEntry(uri, name, 10, days * DAY_S, whole)


def test_what_is_in_use_stays_whatever_its_age() -> None:
    """A container that starts again fetches its package again, months later too."""
    assert prunable([entry("a", 99)], {"a"}, 0.0, 0) == ()
    assert prunable([entry("a", 99)], {"b"}, 0.0, 0) == (entry("a", 99),)


def test_young_ones_stay() -> None:
    """A submission under way has uploaded its package and not yet said so."""
    chosen = prunable([entry("a", 6.9), entry("b", 7.0), entry("c", 8)], (), 7 * DAY_S, 0)
    assert [each.uri for each in chosen] == ["b", "c"]


def test_the_youngest_of_each_name_are_kept() -> None:
    """Going back one version has to be possible, for every topology alike."""
    entries = [entry("a1", 3), entry("a2", 2), entry("a3", 1), entry("b1", 9, name="other")]
    assert [each.uri for each in prunable(entries, (), 0.0, 1)] == ["a2", "a1"]
    assert prunable(entries, (), 0.0, 3) == ()


def test_what_is_in_use_does_not_count_among_those_kept() -> None:
    """`--keep 1` is one to go back to, beside the one that runs."""
    entries = [entry("a1", 3), entry("a2", 2), entry("a3", 1)]
    assert [each.uri for each in prunable(entries, {"a3"}, 0.0, 1)] == ["a1"]


def test_an_unfinished_upload_is_nothing_to_go_back_to() -> None:
    """It goes by its age alone, and does not count among those kept."""
    entries = [entry("a1", 3), entry("a2", 2), entry("a3", 1, whole=False)]
    assert [each.uri for each in prunable(entries, (), 0.0, 1)] == ["a3", "a1"]
    assert [each.uri for each in prunable(entries, (), 2 * DAY_S, 1)] == ["a1"]


def test_an_unfinished_upload_does_not_take_the_package_of_its_uri_along() -> None:
    """Removing by URI removes both, so the younger of them decides."""
    both = [entry("a", 10, whole=False), entry("a", 1)]
    (one,) = merged(both)
    assert (one.age_s, one.whole, one.size_bytes) == (DAY_S, True, 20)
    assert prunable(both, (), 7 * DAY_S, 0) == ()
    assert len(prunable(both[:1], (), 7 * DAY_S, 0)) == 1
