"""The contract of the uploader family as tests."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.errors import PackageError
from heron.spi.uploader import Uploader
from heron_testing.contracts.uploader_faults import UploaderFaultCases
from heron_testing.contracts.uploader_listing import UploaderListingCases

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UploaderContract"]

_UPLOADS_AT_ONCE = 4


class UploaderContract(UploaderFaultCases, UploaderListingCases):
    """Subclass it with the class attributes of `DriverContract`, its fixtures `options` and `faults`, and `damage`."""

    @abstractmethod
    def damage(self, uri: str) -> None:
        """Changes one byte of the stored package behind the driver's back."""

    @pytest.fixture
    def uploader(self, options: dict[str, object]) -> Uploader:
        """The driver under test."""
        driver = self.driver_class.open(options)
        assert isinstance(driver, Uploader)
        return driver

    @pytest.fixture
    def package(self, tmp_path: Path) -> Path:
        """A small package file; what is in it does not matter to an uploader."""
        path = tmp_path / "package.tar.gz"
        path.write_bytes(b"package" * 100)
        return path

    @pytest.fixture
    def target(self, tmp_path: Path) -> Path:
        """Where downloads go; its folder exists, as an executor's does."""
        folder = tmp_path / "container"
        folder.mkdir()
        return folder / "package.tar.gz"

    def test_download_returns_what_was_uploaded(self, uploader: Uploader, package: Path, target: Path) -> None:
        """The one thing an uploader is for."""
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    @pytest.mark.parametrize("size", [0, 1, 5 * 1024 * 1024 + 3])
    def test_size_does_not_matter(self, uploader: Uploader, package: Path, target: Path, size: int) -> None:
        """Drivers move packages in pieces; the seams are at the edges."""
        package.write_bytes(bytes(range(251)) * (size // 251) + b"x" * (size % 251))
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    def test_uri_carries_the_sha256(self, uploader: Uploader, package: Path) -> None:
        """So a container can prove that it runs what was submitted."""
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        assert digest in uploader.upload(package, "words")

    def test_same_content_has_the_same_uri(self, uploader: Uploader, package: Path) -> None:
        """An upload that is tried again is not a second package."""
        assert uploader.upload(package, "words") == uploader.upload(package, "words")

    def test_other_content_never_overwrites(self, uploader: Uploader, package: Path, target: Path) -> None:
        """A running topology may fetch its package again at any time, whatever was submitted since."""
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
        """The command uploads, executors download: nothing may live in the driver object alone."""
        uri = uploader.upload(package, "words")
        other = self.driver_class.open(options)
        assert isinstance(other, Uploader)
        other.download(uri, target)
        assert target.read_bytes() == package.read_bytes()

    def test_undo_removes_the_package(self, uploader: Uploader, package: Path, target: Path) -> None:
        """A submission that fails later leaves nothing behind."""
        uri = uploader.upload(package, "words")
        uploader.undo(uri)
        with pytest.raises(PackageError):
            uploader.download(uri, target)
        assert not target.exists()

    def test_undo_twice_is_no_error(self, uploader: Uploader, package: Path) -> None:
        """Clean-up runs in more than one place and must not fail because it ran before."""
        uri = uploader.upload(package, "words")
        uploader.undo(uri)
        uploader.undo(uri)

    def test_undo_of_one_leaves_the_other(self, uploader: Uploader, package: Path, target: Path) -> None:
        """Two topologies may be made from one file."""
        first, second = uploader.upload(package, "one"), uploader.upload(package, "two")
        uploader.undo(first)
        uploader.download(second, target)
        assert target.read_bytes() == package.read_bytes()

    def test_upload_after_undo_stores_again(self, uploader: Uploader, package: Path, target: Path) -> None:
        """Submitting again after a failure is the usual next step."""
        uploader.undo(uploader.upload(package, "words"))
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    def test_damaged_package_is_refused_whole(self, uploader: Uploader, package: Path, target: Path) -> None:
        """Code that is not what was submitted must not run, and a half file must not look like a package."""
        uri = uploader.upload(package, "words")
        self.damage(uri)
        with pytest.raises(PackageError, match="SHA-256"):
            uploader.download(uri, target)
        assert list(target.parent.iterdir()) == []

    def test_upload_repairs_a_damaged_package(self, uploader: Uploader, package: Path, target: Path) -> None:
        """The remedy that the error names, to submit again, must work."""
        self.damage(uploader.upload(package, "words"))
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    def test_download_replaces_what_is_there(self, uploader: Uploader, package: Path, target: Path) -> None:
        """A container that starts again finds its last attempt's file."""
        target.write_bytes(b"left over")
        uploader.download(uploader.upload(package, "words"), target)
        assert target.read_bytes() == package.read_bytes()

    def test_missing_file_is_named(self, uploader: Uploader, tmp_path: Path) -> None:
        """The person who reads the error must see which file was meant."""
        with pytest.raises(PackageError, match="no-such-file"):
            uploader.upload(tmp_path / "no-such-file", "words")

    @pytest.mark.parametrize("name", ["", ".", "..", "../words", "a/b", "/words", "a\\b", "a\0b", ".words", "a b", "ä"])
    def test_hostile_name_is_refused(self, uploader: Uploader, package: Path, name: str) -> None:
        """A name becomes part of a path or key; nothing in it may lead elsewhere."""
        with pytest.raises(PackageError, match="name"):
            uploader.upload(package, name)

    @pytest.mark.parametrize("change", ["scheme", "place", "digest", "nothing"])
    def test_foreign_uri_is_refused(self, uploader: Uploader, package: Path, target: Path, change: str) -> None:
        """URIs come back from the state manager, where others may have written."""
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
        """A wrong URI in the state must not delete somebody's file."""
        uri = uploader.upload(package, "words")
        bystander = tmp_path / "bystander"
        bystander.write_bytes(b"keep")
        with pytest.raises(PackageError):
            uploader.undo(f"{uri[: uri.index(':')]}://{bystander}")
        assert bystander.exists()

    def test_uploads_at_once_agree(self, options: dict[str, object], package: Path, target: Path) -> None:
        """Two people may submit the same file in the same moment."""
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
