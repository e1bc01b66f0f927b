"""The listing of packages, the progress of transfers and the memory of transfers, for the uploader suite."""

from __future__ import annotations

from pathlib import Path

from heron.spi.uploader import Uploader
from heron_testing.contracts.driver import DriverContract, in_time, requires
from heron_testing.contracts.parts.uploader_weight import peak_bytes

__all__ = ["MOST_BYTES", "UploaderListingCases"]

MOST_BYTES = 80 * 1024 * 1024
"""The limit of the resident memory, in bytes, of a process that moves packages of any size."""

_HEAVY_BYTES = 96 * 1024 * 1024  # above MOST_BYTES, so a process that holds the package in memory fails
_YOUNG_S = 3600.0


class UploaderListingCases(DriverContract):
    """Part of `heron_testing.contracts.uploader.UploaderContract`."""

    family = "uploader"

    def test_lists_exactly_the_stored_packages(self, uploader: Uploader, package: Path) -> None:
        """`heron packages` shows this list, and removes packages by their URIs in it."""
        requires(uploader, "listing")
        assert uploader.packages() == ()
        first = uploader.upload(package, "one")
        package.write_bytes(b"another content")
        second = uploader.upload(package, "two-2")
        listed = {each.uri: each for each in uploader.packages()}
        assert set(listed) == {first, second}
        assert (listed[first].name, listed[second].name) == ("one", "two-2")
        assert listed[second].size_bytes == len(b"another content")
        assert all(each.whole and 0 <= each.age_s < _YOUNG_S for each in listed.values())

    def test_listed_packages_can_be_removed(self, uploader: Uploader, package: Path) -> None:
        """A listed URI removes its package, also if the content has changed."""
        requires(uploader, "listing")
        uploader.upload(package, "words")
        for each in uploader.packages():
            uploader.undo(each.uri)
        assert uploader.packages() == ()

    def test_progress_never_falls_and_ends_at_the_whole(self, uploader: Uploader, package: Path, target: Path) -> None:
        """A progress bar that goes back or stops early looks like a failure."""
        package.write_bytes(b"x" * (3 * 1024 * 1024))
        reports: list[tuple[int, int]] = []
        uploader.follow(lambda moved, total: reports.append((moved, total)))
        uri = uploader.upload(package, "words")
        uploads, reports[:] = list(reports), []
        uploader.download(uri, target)
        for calls in (uploads, reports):
            moved = [each for each, _ in calls]
            assert moved == sorted(moved)
            assert {total for _, total in calls} <= {package.stat().st_size}
            assert not calls or calls[-1][0] == calls[-1][1]

    def test_memory_does_not_grow_with_the_package(
        self, uploader: Uploader, options: dict[str, object], tmp_path: Path
    ) -> None:
        """Executors and commands have less memory than a package can need."""
        del uploader
        with in_time(60.0):
            assert peak_bytes(self.driver_class, options, _HEAVY_BYTES, tmp_path) < MOST_BYTES
