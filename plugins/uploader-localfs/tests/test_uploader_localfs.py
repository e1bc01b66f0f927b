"""The local uploader: its contract, folders, file modes, and errors of the disk."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from heron.errors import ConfigError, PackageError
from heron_testing.contracts.uploader import UploaderContract
from heron_testing.faults import Faults, file_faults
from heron_uploader_localfs import LocalfsUploader


def stored(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


class TestContract(UploaderContract):
    name = "localfs"
    driver_class = LocalfsUploader

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"root": str(tmp_path / "root")}

    @pytest.fixture
    def faults(self, tmp_path: Path) -> Faults:
        return file_faults(tmp_path / "root")

    def damage(self, uri: str) -> None:
        path = stored(uri)
        path.write_bytes(b"X" + path.read_bytes()[1:])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "root"


@pytest.fixture
def uploader(root: Path) -> LocalfsUploader:
    return LocalfsUploader.open({"root": str(root)})


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "package"
    path.write_bytes(b"content")
    return path


def test_name_is_readable_and_content_addressed(uploader: LocalfsUploader, package: Path) -> None:
    """The name shows people which topology a package belongs to; the digest separates two packages."""
    path = stored(uploader.upload(package, "words"))
    assert path.name == f"words-{hashlib.sha256(b'content').hexdigest()}.tar.gz"


def test_only_the_owner_can_read(uploader: LocalfsUploader, root: Path, package: Path) -> None:
    """Packages contain code, and may contain secrets."""
    path = stored(uploader.upload(package, "words"))
    modes = [each.stat().st_mode & 0o777 for each in (root.parent, root, path)]
    assert modes == [0o700, 0o700, 0o600]


def test_an_upload_leaves_no_partial_file(uploader: LocalfsUploader, root: Path, package: Path) -> None:
    """Partial files that stay would fill the disk."""
    path = stored(uploader.upload(package, "words"))
    assert list(root.iterdir()) == [path]


@pytest.mark.parametrize("then", ["upload", "undo"])
def test_the_next_command_removes_the_partial_file_of_a_killed_upload(
    uploader: LocalfsUploader, root: Path, package: Path, then: str
) -> None:
    """A process cannot catch ``kill -9``, so a later command cleans up. A lock protects a running upload."""
    uri = uploader.upload(package, "words")
    dead, alive = (root / f".{stored(uri).name}.part-{each}" for each in ("dead", "alive"))
    dead.touch()
    with alive.open("wb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        if then == "upload":
            uploader.upload(package, "words")
        else:
            uploader.undo(uri)
        assert not dead.exists()
        assert alive.exists()


def test_the_uri_quotes_special_characters_of_the_root(tmp_path: Path, package: Path) -> None:
    """Names of home folders can contain spaces, % and #, which have a meaning in a URI."""
    uploader = LocalfsUploader.open({"root": str(tmp_path / "a b#c%20ä")})
    uploader.download(uploader.upload(package, "words"), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"content"


def test_tilde_in_the_root_is_the_home_folder(tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default root starts with a tilde, and a driver may be opened without a profile."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert stored(LocalfsUploader.open({}).upload(package, "w")).parent == tmp_path / ".heron" / "packages"


def test_a_uri_of_another_root_names_the_option(uploader: LocalfsUploader, tmp_path: Path, package: Path) -> None:
    """If a container uses another profile than the command, the error must not say that the file is missing."""
    other = LocalfsUploader.open({"root": str(tmp_path / "other")})
    with pytest.raises(PackageError, match=r"uploader\.root"):
        other.download(uploader.upload(package, "words"), tmp_path / "target")


def test_a_root_that_is_a_file_is_named(root: Path, uploader: LocalfsUploader, package: Path) -> None:
    """A wrong root is a mistake in a profile, so the error names the option."""
    root.parent.mkdir()
    root.touch()
    with pytest.raises(PackageError, match=r"deep/root.*choose another uploader\.root"):
        uploader.upload(package, "words")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [(errno.ENOSPC, "free some space"), (errno.EDQUOT, "free some space"), (errno.EACCES, "grant the permission")],
)
def test_an_error_of_the_disk_names_a_remedy_and_leaves_no_file(
    uploader: LocalfsUploader,
    root: Path,
    package: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    remedy: str,
) -> None:
    """A full disk and a missing permission have different remedies. Neither may leave a partial package."""

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code), "somewhere")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(PackageError, match=remedy):
        uploader.upload(package, "words")
    assert list(root.iterdir()) == []


def test_missing_target_folder_is_named(uploader: LocalfsUploader, package: Path, tmp_path: Path) -> None:
    """The folder of a running container can be removed."""
    uri = uploader.upload(package, "words")
    with pytest.raises(PackageError, match="no-such-folder"):
        uploader.download(uri, tmp_path / "no-such-folder" / "target")


def test_wrong_type_of_root_is_refused() -> None:
    """The mistake shows when the driver is opened, not at the first upload."""
    with pytest.raises(ConfigError, match=r"uploader\.root: expected `str`, got `int`; it is 3"):
        LocalfsUploader.open({"root": 3})


def test_a_finishing_upload_does_not_count_as_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another upload of the same content removes only the partial files of killed uploads."""
    package = tmp_path / "package.tar.gz"
    package.write_bytes(b"content")
    options = {"root": str(tmp_path / "root")}
    first, second = LocalfsUploader.open(options), LocalfsUploader.open(options)
    rename = Path.replace

    def rename_beside_another_upload(partial: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", rename)
        second.upload(package, "words")
        return rename(partial, target)

    monkeypatch.setattr(Path, "replace", rename_beside_another_upload)
    uri = first.upload(package, "words")
    fetched = tmp_path / "fetched.tar.gz"
    second.download(uri, fetched)
    assert fetched.read_bytes() == b"content"
