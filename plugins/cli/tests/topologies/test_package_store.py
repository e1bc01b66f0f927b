"""The choice of packages that may be removed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest

from heron.errors import PackageError, UsageError
from heron.spi.uploader import LATEST, PackageEntry, Uploader
from heron_cli.topologies.package_store import find_package, merged, prunable

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


def test_a_tagged_package_stays_whatever_its_age() -> None:
    """A rollback needs it; `latest` is on some package of each name, and keeps none."""
    entries = [replace(entry("a", 99), tags=(LATEST,)), replace(entry("b", 99), tags=(LATEST, "live"))]
    assert [each.uri for each in prunable(entries, (), 0.0, 0)] == ["a"]


class TwoVersions(Uploader):
    """Has two versions of ``words``, whose tag ``live`` means the first."""

    spi_version = 1

    @classmethod
    def open(cls, options: object) -> Self:
        del options
        return cls()

    def upload(self, package: Path, name: str) -> str:
        raise PackageError(name, package)

    def undo(self, uri: str) -> None:
        raise PackageError(uri)

    def download(self, uri: str, target: Path) -> None:
        raise PackageError(uri, target)

    def packages(self) -> tuple[PackageEntry, ...]:
        """Return them, and one of another name with the same content."""
        versions = ("aaaaaaaa1" + "0" * 55, "aaaaaaaa2" + "0" * 55)
        named = [(name, each) for name in ("words", "others") for each in versions]
        return tuple(replace(entry(f"{name}-{each}", 1, name=name), version=each) for name, each in named)

    def tagged(self, name: str, tag: str) -> PackageEntry:
        if (name, tag) != ("words", "live"):
            raise PackageError(name, tag)
        return self.packages()[0]


@pytest.mark.parametrize("reference", ["words:live", "words:aaaaaaaa1", "words:aaaaaaaa1" + "0" * 55])
def test_a_package_is_found_by_tag_or_version(reference: str) -> None:
    """People copy the first digits of a version from a list."""
    assert find_package(TwoVersions(), reference).uri.startswith("words-aaaaaaaa1")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("words:aaaaaaaa", "several versions begin so; versions of 'words': aaaaaaaa1000, aaaaaaaa2000"),
        ("words:bbbbbbbb", "there is no such version; versions of 'words': aaaaaaaa1000, aaaaaaaa2000"),
        ("nothing:bbbbbbbb", "versions of 'nothing': none"),
        ("words", "not of the form NAME:TAG or NAME:VERSION"),
        (":live", "not of the form"),
        ("words:", "not of the form"),
    ],
)
def test_a_reference_to_no_single_package_is_refused(reference: str, message: str) -> None:
    """Two versions that begin alike are no reason to start one of them."""
    with pytest.raises(UsageError, match=message):
        find_package(TwoVersions(), reference)


def test_an_uploader_without_tags_names_one_that_has_them() -> None:
    """Third-party uploaders need no change."""

    class Shelf(TwoVersions):
        tagged = Uploader.tagged

    with pytest.raises(PackageError, match="Shelf has no tags; use a profile whose uploader has them, such as oci"):
        find_package(Shelf(), "words:live")
