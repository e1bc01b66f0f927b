"""The contract suite of uploaders."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.errors import PackageError
from heron.spi.uploader import Uploader
from heron_testing.contracts.fault_cases.uploader_faults import UploaderFaultCases
from heron_testing.contracts.parts.uploader_listing import UploaderListingCases
from heron_testing.contracts.parts.uploader_tags import UploaderTagCases

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UploaderContract"]

_UPLOADS_AT_ONCE = 4


class UploaderContract(UploaderFaultCases, UploaderListingCases, UploaderTagCases):
    """Subclass it with the attributes of `DriverContract`, the fixtures `options` and `faults`, and `damage`."""

    @abstractmethod
    def damage(self, uri: str) -> None:
        """Change one byte of the stored package without the driver."""

    @pytest.fixture
    def uploader(self, options: dict[str, object]) -> Uploader:
        """The driver under test."""
        driver = self.driver_class.open(options)
        assert isinstance(driver, Uploader)
        return driver

    @pytest.fixture
    def package(self, tmp_path: Path) -> Path:
        """A small package file; its content does not matter to an uploader."""
        path = tmp_path / "package.tar.gz"
        path.write_bytes(b"package" * 100)
        return path

    @pytest.fixture
    def target(self, tmp_path: Path) -> Path:
        """The path for downloads; its folder exists, as in an executor."""
        folder = tmp_path / "container"
        folder.mkdir()
        return folder / "package.tar.gz"

    def test_download_returns_the_uploaded_bytes(self, uploader: Uploader, package: Path, target: Path) -> None:
        """The container must run the files that were submitted."""
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    @pytest.mark.parametrize("size", [0, 1, 5 * 1024 * 1024 + 3])
    def test_size_does_not_matter(self, uploader: Uploader, package: Path, target: Path, size: int) -> None:
        """Drivers move packages in pieces, so errors occur at the edges of pieces."""
        package.write_bytes(bytes(range(251)) * (size // 251) + b"x" * (size % 251))
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    def test_uri_carries_the_sha256(self, uploader: Uploader, package: Path) -> None:
        """A container checks its package against the digest in the URI."""
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        assert digest in uploader.upload(package, "words")

    def test_same_content_has_the_same_uri(self, uploader: Uploader, package: Path) -> None:
        """A repeated upload does not store a second package."""
        assert uploader.upload(package, "words") == uploader.upload(package, "words")

    def test_other_content_never_overwrites(self, uploader: Uploader, package: Path, target: Path) -> None:
        """A running topology can fetch its package again at any time, also after later submissions."""
        first = uploader.upload(package, "words")
        content = package.read_bytes()
        package.write_bytes(b"another")
        second = uploader.upload(package, "words")
        uploader.download(first, target)
        assert first != second
        assert target.read_bytes() == content

    def test_another_process_can_download(
        self, uploader: Uploader, options: dict[str, object], package: Path, target: Path
    ) -> None:
        """The command uploads and executors download, so the driver object may keep no necessary state."""
        uri = uploader.upload(package, "words")
        other = self.driver_class.open(options)
        assert isinstance(other, Uploader)
        other.download(uri, target)
        assert target.read_bytes() == package.read_bytes()

    def test_undo_removes_the_package(self, uploader: Uploader, package: Path, target: Path) -> None:
        """A submission that fails after its upload leaves no package."""
        uri = uploader.upload(package, "words")
        uploader.undo(uri)
        with pytest.raises(PackageError):
            uploader.download(uri, target)
        assert not target.exists()

    def test_undo_twice_is_no_error(self, uploader: Uploader, package: Path) -> None:
        """Clean-up runs in several places, so a second call must succeed."""
        uri = uploader.upload(package, "words")
        uploader.undo(uri)
        uploader.undo(uri)

    def test_undo_of_one_leaves_the_other(self, uploader: Uploader, package: Path, target: Path) -> None:
        """Two topologies can have the same package content under two names."""
        first, second = uploader.upload(package, "one"), uploader.upload(package, "two")
        uploader.undo(first)
        uploader.download(second, target)
        assert target.read_bytes() == package.read_bytes()

    def test_upload_after_undo_stores_again(self, uploader: Uploader, package: Path, target: Path) -> None:
        """People submit again after a failure."""
        uploader.undo(uploader.upload(package, "words"))
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    def test_damaged_package_is_refused_whole(self, uploader: Uploader, package: Path, target: Path) -> None:
        """Changed code must not run, and an incomplete file must not look like a package."""
        uri = uploader.upload(package, "words")
        self.damage(uri)
        with pytest.raises(PackageError, match="SHA-256"):
            uploader.download(uri, target)
        assert list(target.parent.iterdir()) == []

    def test_upload_repairs_a_damaged_package(self, uploader: Uploader, package: Path, target: Path) -> None:
        """The error tells people to submit again, so that must work."""
        self.damage(uploader.upload(package, "words"))
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    def test_download_replaces_what_is_there(self, uploader: Uploader, package: Path, target: Path) -> None:
        """A container that starts again finds the file of its last attempt."""
        target.write_bytes(b"left over")
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    def test_missing_file_is_named(self, uploader: Uploader, tmp_path: Path) -> None:
        """People must see in the error which file is missing."""
        with pytest.raises(PackageError, match="no-such-file"):
            uploader.upload(tmp_path / "no-such-file", "words")

    @pytest.mark.parametrize("name", ["", ".", "..", "../words", "a/b", "/words", "a\\b", "a\0b", ".words", "a b", "ä"])
    def test_hostile_name_is_refused(self, uploader: Uploader, package: Path, name: str) -> None:
        """A name becomes part of a path or key, so it must not lead to another place."""
        with pytest.raises(PackageError, match="name"):
            uploader.upload(package, name)

    @pytest.mark.parametrize("change", ["scheme", "place", "digest", "nothing"])
    def test_foreign_uri_is_refused(self, uploader: Uploader, package: Path, target: Path, change: str) -> None:
        """URIs come from the state manager, where other programs can write."""
        uri = uploader.upload(package, "words")
        changes: dict[str, Callable[[str], str]] = {
            "scheme": lambda text: "gopher" + text[text.index(":") :],
            "place": lambda text: text.replace("words-", "../../words-"),
            "digest": lambda text: text.replace(hashlib.sha256(package.read_bytes()).hexdigest(), "0" * 64),
            "nothing": lambda _: "",
        }
        with pytest.raises(PackageError):
            uploader.download(changes[change](uri), target)
        assert not target.exists()

    def test_undo_of_a_foreign_uri_removes_nothing(self, uploader: Uploader, package: Path, tmp_path: Path) -> None:
        """A wrong URI in the state must not delete another file."""
        uri = uploader.upload(package, "words")
        bystander = tmp_path / "bystander"
        bystander.write_bytes(b"keep")
        with pytest.raises(PackageError):
            uploader.undo(f"{uri[: uri.index(':')]}://{bystander}")
        assert bystander.exists()

    def test_uploads_at_once_agree(self, options: dict[str, object], package: Path, target: Path) -> None:
        """Several people can submit the same file at the same moment."""
        package.write_bytes(b"x" * (1024 * 1024))

        def upload(_: int) -> str:
            driver = self.driver_class.open(options)
            assert isinstance(driver, Uploader)
            return driver.upload(package, "words")

        with ThreadPoolExecutor(_UPLOADS_AT_ONCE) as threads:
            uris = list(threads.map(upload, range(_UPLOADS_AT_ONCE)))
        driver = self.driver_class.open(options)
        assert isinstance(driver, Uploader)
        driver.download(uris[0], target)
        assert len(set(uris)) == 1
        assert target.read_bytes() == package.read_bytes()
