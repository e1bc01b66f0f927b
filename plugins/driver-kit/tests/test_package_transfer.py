"""Transfer of packages: parts, interrupted downloads, and a full disk."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import PackageError
from heron_driver_kit.packages import (
    CHUNK_BYTES,
    InterruptedTransferError,
    LocalPackage,
    PackageName,
    receive,
    sha256_of,
    translated_errors,
)
from heron_testing.faults import full_files

CONTENT = bytes(range(256)) * 1024
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 3000, CHUNK_BYTES, CHUNK_BYTES + 1])
@pytest.mark.parametrize("part_bytes", [1000, CHUNK_BYTES, 3 * CHUNK_BYTES])
def test_parts_together_are_the_content(tmp_path: Path, size: int, part_bytes: int) -> None:
    """The size of a part is independent of the size of a read."""
    content = (CONTENT * 2)[:size]
    path = tmp_path / "package"
    path.write_bytes(content)
    local = LocalPackage.read(path, part_bytes)
    cut = [content[start : start + part_bytes] for start in range(0, size, part_bytes)] or [b""]
    assert (local.size_bytes, local.digest) == (size, hashlib.sha256(content).hexdigest())
    assert list(local.part_md5) == [hashlib.md5(each, usedforsecurity=False).digest() for each in cut]
    assert [local.part(index) for index in range(len(cut))] == cut


def test_a_package_that_shrinks_during_the_upload_is_an_error(tmp_path: Path) -> None:
    """A new build may replace the file during the upload."""
    path = tmp_path / "package"
    path.write_bytes(CONTENT)
    local = LocalPackage.read(path, 1000)
    path.write_bytes(CONTENT[:1500])
    with pytest.raises(PackageError, match="changed while it was uploaded"):
        local.part(1)


def arrive(target: Path, breaks: list[int], digest: str = DIGEST) -> list[int]:
    """Receive CONTENT over connections that break at these offsets; return the start offset of each connection."""
    begun: list[int] = []

    def source(offset: int) -> Iterator[bytes]:
        begun.append(offset)
        end = breaks.pop(0) if breaks else len(CONTENT)
        for start in range(offset, end, 1000):
            yield CONTENT[start : min(start + 1000, end)]
        if end < len(CONTENT):
            msg = "the line is bad"
            raise InterruptedTransferError(msg)

    receive(source, target, digest, "package p", lambda *_: None, len(CONTENT))
    return begun


@given(st.lists(st.integers(1, len(CONTENT) - 1), unique=True, max_size=5).map(sorted))
def test_a_download_continues_at_the_interruption(tmp_path_factory: pytest.TempPathFactory, breaks: list[int]) -> None:
    """This holds for each offset and for several interruptions."""
    target = tmp_path_factory.mktemp("target") / "package"
    assert arrive(target, list(breaks)) == [0, *breaks]
    assert target.read_bytes() == CONTENT


def test_an_interruption_without_progress_is_an_error(tmp_path: Path) -> None:
    """Otherwise a dead server would cause endless requests."""
    with pytest.raises(InterruptedTransferError):
        arrive(tmp_path / "package", [5000, 5000])
    assert list(tmp_path.iterdir()) == []


def test_wrong_content_leaves_the_target_unchanged(tmp_path: Path) -> None:
    """The target has either the whole package or its former content."""
    target = tmp_path / "package"
    target.write_bytes(b"before")
    with pytest.raises(PackageError, match=r"package p: its SHA-256 is \w+, not 0000"):
        arrive(target, [], "0" * 64)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"before"]


def test_a_full_disk_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    """The message names the path on the full disk."""
    with full_files(), pytest.raises(PackageError, match=r"package p: cannot be written to .*; free some space there"):
        arrive(tmp_path / "package", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space there"),
        (errno.EDQUOT, "free some space there"),
        (errno.EACCES, "grant the permission, or build it again"),
        (errno.EROFS, "grant the permission, or build it again"),
        (errno.EIO, "build it again"),
    ],
)
def test_the_remedy_fits_the_error_of_the_system(code: int, remedy: str) -> None:
    """A full disk and a missing permission have the same remedy in every driver."""
    with pytest.raises(PackageError) as caught, translated_errors("package p: cannot be read", "build it again"):
        raise OSError(code, os.strerror(code), "place")
    assert str(caught.value) == f"package p: cannot be read: {os.strerror(code)} (place); {remedy}"


def test_the_digest_does_not_depend_on_the_chunks() -> None:
    """A store delivers a package in chunks of any size."""
    assert sha256_of(CONTENT[start : start + 1000] for start in range(0, len(CONTENT), 1000)) == DIGEST
    assert sha256_of([]) == hashlib.sha256().hexdigest()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The message names the folder, which may have been removed at run time."""
    with pytest.raises(PackageError, match="no-such-folder"):
        arrive(tmp_path / "no-such-folder" / "package", [])


@pytest.mark.parametrize("name", ["words", "my.words-2", "a" * 180])
def test_a_name_is_restored_from_its_file_name(name: str) -> None:
    """Listings of a store have only file names."""
    named = PackageName(name, DIGEST)
    assert PackageName.of_file(named.file) == named
    assert len(named.file) <= 255


@pytest.mark.parametrize(
    "file", ["", "words.tar.gz", f"-{DIGEST}.tar.gz", f".a-{DIGEST}.tar.gz", f"a-{DIGEST[:16]}.tar.gz", f"a-{DIGEST}"]
)
def test_other_file_names_are_not_packages(file: str) -> None:
    """Such files are neither listed nor removed."""
    assert PackageName.of_file(file) is None
