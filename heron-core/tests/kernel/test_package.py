"""Packages: equal bytes for equal files, and only files of the manifest are unpacked."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from heron.errors import PackageError
from heron.kernel import package as package_module
from heron.kernel.manifest import PackageManifest, encode_manifest, read_manifest
from heron.kernel.package import hash_files, pack, unpack

MANIFEST = PackageManifest(topology="words", module="words", files={}, argv=("--loops", "2"), script=True)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A program of two files."""
    folder = tmp_path / "source"
    (folder / "pack").mkdir(parents=True)
    (folder / "words.py").write_text("WORDS = 1\n", encoding="utf-8")
    (folder / "pack" / "data.bin").write_bytes(bytes(range(256)) * 100)
    return folder


FILES = ("words.py", "pack/data.bin")


def tarred(target: Path, entries: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    """Write a package that `pack` would not write."""
    with tarfile.open(target, "w:gz") as archive:
        for member, data in entries:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return target


def test_unpacking_restores_the_packed_files(source: Path, tmp_path: Path) -> None:
    """Bytes, manifest and private modes are kept."""
    written = pack(source, FILES, MANIFEST, tmp_path / "p.tar.gz")
    read = unpack(tmp_path / "p.tar.gz", tmp_path / "target")
    assert read == written == read_manifest(tmp_path / "target")
    assert (tmp_path / "target/pack/data.bin").read_bytes() == (source / "pack/data.bin").read_bytes()
    assert (tmp_path / "target/words.py").stat().st_mode & 0o077 == 0


def test_the_same_files_make_the_same_bytes(source: Path, tmp_path: Path) -> None:
    """Uploads are addressed by content, so order and time of files must have no effect."""
    pack(source, FILES, MANIFEST, tmp_path / "a.tar.gz")
    (source / "words.py").touch()
    pack(source, tuple(reversed(FILES)), MANIFEST, tmp_path / "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_unpacking_again_replaces_the_files_of_an_earlier_attempt(source: Path, tmp_path: Path) -> None:
    """A killed container starts again in the same folder; unpacking must not follow a link there."""
    pack(source, FILES, MANIFEST, tmp_path / "p.tar.gz")
    outside = tmp_path / "outside"
    outside.write_text("mine", encoding="utf-8")
    (tmp_path / "target").mkdir()
    (tmp_path / "target/words.py").symlink_to(outside)
    unpack(tmp_path / "p.tar.gz", tmp_path / "target")
    assert outside.read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "target/words.py").read_text(encoding="utf-8") == "WORDS = 1\n"


@pytest.mark.parametrize("name", ["../escape.py", "/etc/escape.py", "a/../../escape.py", "a\\b.py"])
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    """An entry of the manifest does not allow it."""
    data = b"x"
    (tmp_path / "f").write_bytes(data)
    manifest = replace(MANIFEST, files={name: hash_files(tmp_path, ["f"])["f"]})
    entries = [(tarfile.TarInfo("manifest.json"), encode_manifest(manifest)), (tarfile.TarInfo(name), data)]
    with pytest.raises(PackageError, match="would leave its folder"):
        unpack(tarred(tmp_path / "p.tar.gz", entries), tmp_path / "target")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    """Only regular files belong to a program."""
    odd = tarfile.TarInfo("odd")
    odd.type = kind
    odd.linkname = "/etc/passwd"
    entries = [(tarfile.TarInfo("manifest.json"), encode_manifest(MANIFEST)), (odd, b"")]
    with pytest.raises(PackageError, match="'odd' is not a regular file"):
        unpack(tarred(tmp_path / "p.tar.gz", entries), tmp_path / "target")


def test_a_changed_file_is_refused_with_both_digests_before_anything_is_unpacked(source: Path, tmp_path: Path) -> None:
    """A different SHA-256 may mean foreign code. A process that looks meanwhile must not find a part of it."""
    listed = hash_files(source, FILES)
    manifest = replace(MANIFEST, files=listed)
    changed = b"WORDS = 2\n"
    entries = [
        (tarfile.TarInfo("manifest.json"), encode_manifest(manifest)),
        (tarfile.TarInfo("pack/data.bin"), (source / "pack/data.bin").read_bytes()),
        (tarfile.TarInfo("words.py"), changed),
    ]
    with pytest.raises(PackageError) as refused:
        unpack(tarred(tmp_path / "p.tar.gz", entries), tmp_path / "target" / "below")
    found = hashlib.sha256(changed).hexdigest()
    assert f"the SHA-256 of 'words.py' is {found}, not {listed['words.py']}" in str(refused.value)
    assert not (tmp_path / "target").exists()


def test_unlisted_missing_and_misplaced_entries_are_refused(source: Path, tmp_path: Path) -> None:
    """The manifest comes first and lists exactly the other entries."""
    manifest = (tarfile.TarInfo("manifest.json"), encode_manifest(MANIFEST))
    with pytest.raises(PackageError, match=r"'more.py' is not in its manifest"):
        unpack(tarred(tmp_path / "1", [manifest, (tarfile.TarInfo("more.py"), b"")]), tmp_path / "target")
    with pytest.raises(PackageError, match=r"begins with 'more.py', not 'manifest.json'"):
        unpack(tarred(tmp_path / "2", [(tarfile.TarInfo("more.py"), b""), manifest]), tmp_path / "target")
    listed = replace(MANIFEST, files=hash_files(source, FILES))
    with pytest.raises(PackageError, match=r"lacks pack/data.bin, words.py"):
        unpack(
            tarred(tmp_path / "3", [(tarfile.TarInfo("manifest.json"), encode_manifest(listed))]), tmp_path / "target"
        )
    with pytest.raises(PackageError, match=r"lacks manifest.json"):
        unpack(tarred(tmp_path / "4", []), tmp_path / "target")


def test_truncated_and_damaged_packages_are_refused(source: Path, tmp_path: Path) -> None:
    """At every cut, the error is a PackageError and no file stays."""
    pack(source, FILES, MANIFEST, tmp_path / "p.tar.gz")
    data = (tmp_path / "p.tar.gz").read_bytes()
    for length in (*range(0, len(data) - 8, max(1, len(data) // 40)), len(data) - 1):
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(PackageError):
            unpack(tmp_path / "cut", tmp_path / "target")
        assert not any(each.is_file() for each in (tmp_path / "target").rglob("*"))
    (tmp_path / "no-tar").write_bytes(gzip.compress(b"\xff" * 2000))
    with pytest.raises(PackageError):
        unpack(tmp_path / "no-tar", tmp_path / "target")


def test_another_python_is_refused_with_both_versions(source: Path, tmp_path: Path) -> None:
    """Pickles and byte code of user libraries do not cross versions reliably."""
    pack(source, FILES, replace(MANIFEST, python="3.9"), tmp_path / "p.tar.gz")
    with pytest.raises(PackageError, match=r"made with Python 3\.9, this container has 3\.\d+"):
        unpack(tmp_path / "p.tar.gz", tmp_path / "target")


def test_a_newer_format_is_refused(source: Path, tmp_path: Path) -> None:
    """An older executor must not guess."""
    pack(source, FILES, replace(MANIFEST, format=2), tmp_path / "p.tar.gz")
    with pytest.raises(PackageError, match=r"format 2 of the manifest is unknown, this version reads 1"):
        unpack(tmp_path / "p.tar.gz", tmp_path / "target")


def test_a_file_that_is_gone_or_a_place_that_is_taken_is_named(source: Path, tmp_path: Path) -> None:
    """Errors of the file system are translated to errors with a remedy."""
    with pytest.raises(PackageError, match=r"gone.py: cannot be packed: No such file"):
        pack(source, ("gone.py",), MANIFEST, tmp_path / "p.tar.gz")
    with pytest.raises(PackageError, match=r"absent/p.tar.gz: cannot be written: No such file"):
        pack(source, FILES, MANIFEST, tmp_path / "absent" / "p.tar.gz")


def listed(files: dict[str, bytes]) -> list[tuple[tarfile.TarInfo, bytes]]:
    """The entries of a package with these files."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    manifest = encode_manifest(replace(MANIFEST, files=hashes))
    return [(tarfile.TarInfo(name), data) for name, data in {"manifest.json": manifest, **files}.items()]


@pytest.mark.parametrize(
    ("first", "second"),
    [("words.py", "Words.py"), ("caf\u00e9.py", "cafe\u0301.py"), ("a.py", "./a.py"), ("a/b.py", "a//b.py")],
)
def test_names_that_are_one_file_somewhere_are_refused(tmp_path: Path, first: str, second: str) -> None:
    """The second file would replace the first after its SHA-256 was checked."""
    package = tarred(tmp_path / "p.tar.gz", listed({first: b"good", second: b"bad"}))
    with pytest.raises(PackageError, match=r"rename the file and submit again"):
        unpack(package, tmp_path / "target")
    assert not any(each.is_file() for each in (tmp_path / "target").rglob("*"))


def test_names_that_differ_in_case_are_refused_when_they_are_packed(tmp_path: Path) -> None:
    """The author hears of it, not the container."""
    for name in ("words.py", "Words.py"):
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(PackageError, match=r"entry 'Words.py' is 'words.py' where case does not count"):
        pack(tmp_path, ("words.py", "Words.py"), MANIFEST, tmp_path / "p.tar.gz")
    assert not (tmp_path / "p.tar.gz").exists()


def test_an_entry_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """The second has no SHA-256 of its own."""
    entries = listed({"words.py": b"good"})
    with pytest.raises(PackageError, match=r"'words.py' is not in its manifest"):
        unpack(tarred(tmp_path / "p.tar.gz", [*entries, entries[-1]]), tmp_path / "target")


def test_a_bomb_is_refused_while_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte of zeros is a megabyte of gzip: the disk of the host must not fill up."""
    monkeypatch.setattr(package_module, "_LEAST_BYTES", 100_000)
    package = tarred(tmp_path / "p.tar.gz", listed({"zeros.bin": bytes(20_000_000)}))
    assert package.stat().st_size < 30_000
    with pytest.raises(
        PackageError, match=r"unpacks to more than the limit of [0-9]+ bytes, which is 100 times its size"
    ):
        unpack(package, tmp_path / "target")
    assert not any(each.is_file() for each in (tmp_path / "target").rglob("*"))


def test_a_bomb_behind_the_last_entry_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a package is read up to its checksum."""
    monkeypatch.setattr(package_module, "_LEAST_BYTES", 100_000)
    package = tarred(tmp_path / "p.tar.gz", listed({"words.py": b"good"}))
    with package.open("ab") as file:
        file.write(gzip.compress(bytes(20_000_000)))
    with pytest.raises(PackageError, match="unpacks to more than the limit"):
        unpack(package, tmp_path / "target")


def test_files_of_equal_bytes_are_refused_when_they_are_packed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No container would unpack them."""
    monkeypatch.setattr(package_module, "_LEAST_BYTES", 100_000)
    (source / "zeros.bin").write_bytes(bytes(20_000_000))
    with pytest.raises(PackageError, match=r"its files take 20000010 bytes, more than the limit of [0-9]+ bytes"):
        pack(source, ("words.py", "zeros.bin"), MANIFEST, tmp_path / "p.tar.gz")
    assert not (tmp_path / "p.tar.gz").exists()


def test_a_sparse_entry_is_refused(tmp_path: Path) -> None:
    """It says that it is larger than its bytes, without any limit."""
    entries = listed({"words.py": b"good"})
    entries[-1][0].type = tarfile.GNUTYPE_SPARSE
    with pytest.raises(PackageError, match=r"not a regular file|garbled"):
        unpack(tarred(tmp_path / "p.tar.gz", entries), tmp_path / "target")


def members(package: Path) -> list[bytes]:
    """The gzip members of a package."""
    rest, found = package.read_bytes(), []
    while rest:
        reader = zlib.decompressobj(31)
        reader.decompress(rest)
        found.append(rest[: len(rest) - len(reader.unused_data)])
        rest = reader.unused_data
    return found


def test_a_changed_file_changes_its_own_members_only(tmp_path: Path) -> None:
    """A registry keeps equal members once, so a new version uploads what has changed."""
    source = tmp_path / "source"
    source.mkdir()
    files = [f"part_{number}.py" for number in range(100)]
    for name in files:
        (source / name).write_text(f"{name} = 1\n" * 50, encoding="utf-8")
    (source / "model.bin").write_bytes(bytes(range(256)) * 1024)
    pack(source, [*files, "model.bin"], MANIFEST, tmp_path / "a")
    (source / files[50]).write_text("changed and shorter\n", encoding="utf-8")
    pack(source, [*files, "model.bin"], MANIFEST, tmp_path / "b")
    first, second = members(tmp_path / "a"), members(tmp_path / "b")
    assert len(first) == len(second) > 4
    assert len(set(second) - set(first)) == 3  # the manifest, the group of the file, and the padding at the end
    assert any(len(gzip.decompress(each)) >= 256 * 1024 for each in set(first) & set(second))
    assert unpack(tmp_path / "b", tmp_path / "target").files.keys() == {*files, "model.bin"}
