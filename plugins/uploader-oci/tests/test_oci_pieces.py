"""How a package is cut into layers, and how tags are named; no server."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from heron.errors import ConfigError, PackageError
from heron_uploader_oci import OciUploader
from heron_uploader_oci.artifact import read_artifact
from heron_uploader_oci.oci_options import OciOptions
from heron_uploader_oci.pieces import CutPackage
from heron_uploader_oci.sign_in import challenges
from heron_uploader_oci.tags import name_tag, package_of, package_tag, parse_name_tag

KIB = 1024
LARGE = bytes(range(256)) * KIB * 3  # three chunks of the reader


def cut(tmp_path: Path, content: bytes) -> CutPackage:
    """Cut a file with that content, and check that the pieces in sequence are the file."""
    path = tmp_path / "package"
    path.write_bytes(content)
    found = CutPackage.read(path)
    pieces = [b"".join(found.content(each)) for each in found.pieces]
    assert b"".join(pieces) == content
    assert found.digest == hashlib.sha256(content).hexdigest()
    assert [each.digest for each in found.pieces] == [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in pieces]
    assert [each.size_bytes for each in found.pieces] == [len(each) for each in pieces]
    return found


@pytest.mark.parametrize("level", [0, 6])
def test_each_gzip_member_is_a_piece(tmp_path: Path, level: int) -> None:
    """Equal members of two versions are equal layers, whatever precedes them; level 0 gives members of many chunks."""
    members = [gzip.compress(each, level, mtime=0) for each in (b"manifest", LARGE, b"", b"small" * 9, LARGE[::-1])]
    found = cut(tmp_path, b"".join(members))
    assert [each.size_bytes for each in found.pieces] == [len(each) for each in members]


@pytest.mark.parametrize(
    ("content", "pieces"),
    [
        (b"", 1),
        (b"no gzip", 1),
        (gzip.compress(b"a", mtime=0) + b"no gzip", 2),
        (gzip.compress(b"a", mtime=0) + gzip.compress(LARGE, mtime=0)[:-100], 2),
        (gzip.compress(bytes(300 * KIB), 0)[: 256 * KIB] * 2, 1),
        (gzip.compress(bytes(16 * KIB * KIB), mtime=0) + gzip.compress(b"b", mtime=0), 2),
    ],
)
def test_other_files_lose_no_byte(tmp_path: Path, content: bytes, pieces: int) -> None:
    """An uploader must store any file; only sharing depends on its form."""
    assert len(cut(tmp_path, content).pieces) == pieces


def test_a_member_that_ends_with_a_chunk_is_a_piece(tmp_path: Path) -> None:
    """The reader takes 256 KiB at a time, and learns in the next chunk whether more follows."""
    whole = gzip.compress(bytes(256 * KIB), 0)
    first = gzip.compress(bytes(256 * KIB - (len(whole) - 256 * KIB)), 0)
    assert len(first) == 256 * KIB
    assert cut(tmp_path, first + gzip.compress(b"b", mtime=0)).pieces[0].size_bytes == 256 * KIB
    assert len(cut(tmp_path, first).pieces) == 1


def test_halves_are_the_same_bytes(tmp_path: Path) -> None:
    """They replace a layer that the registry holds damaged."""
    found = cut(tmp_path, LARGE)
    first, second = found.halves(found.pieces[0])
    assert b"".join([*found.content(first), *found.content(second)]) == LARGE
    assert min(first.size_bytes, second.size_bytes) > 0


def test_a_file_that_changes_while_it_is_uploaded_is_refused(tmp_path: Path) -> None:
    """The last chunk does not come, so no registry stores the layer."""
    found = cut(tmp_path, LARGE)
    found.path.write_bytes(LARGE[:-1] + b"X")
    content = found.content(found.pieces[0])
    with pytest.raises(PackageError, match="changed while it was uploaded"):
        list(content)
    found.path.write_bytes(LARGE[:-1])
    with pytest.raises(PackageError, match="changed while it was uploaded"):
        list(found.content(found.pieces[0]))


@pytest.mark.parametrize("name", ["words", "words-2", "a.b", "sha256", "Words_3", "words-" + "a" * 56])
def test_tags_of_packages_and_of_names_differ(name: str) -> None:
    """Both kinds share one list of the registry."""
    digest = "a" * 64
    package = package_of(f"{name}-{digest}")
    assert package is not None
    assert (package.name, package.digest, package_tag(package)) == (name, digest, f"{name}-{digest}")
    assert parse_name_tag(package_tag(package)) is None
    assert parse_name_tag(name_tag(name, "v1.0")) == (name, "v1.0")
    assert package_of(name_tag(name, "v1.0")) is None
    assert package_of(f"sha256-{digest}.sig") is None


@pytest.mark.parametrize("name", ["a" * 64, "-words"])
def test_a_name_that_no_tag_can_have_is_refused(name: str) -> None:
    """A registry would refuse it with a message about its own grammar."""
    with pytest.raises(PackageError, match="at most 63 characters"):
        name_tag(name, "live")


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        (['Basic realm="a, b"'], [("basic", {"realm": "a, b"})]),
        (
            ['Bearer realm="https://a/t?x=1,2",service="s",scope="repository:a/b:pull,push"'],
            [("bearer", {"realm": "https://a/t?x=1,2", "service": "s", "scope": "repository:a/b:pull,push"})],
        ),
        (['bearer realm=a,error="insufficient_scope"'], [("bearer", {"realm": "a", "error": "insufficient_scope"})]),
        (['Negotiate, Basic realm="x", Bearer realm="y"'], [("basic", {"realm": "x"}), ("bearer", {"realm": "y"})]),
        (["Negotiate", "Basic"], [("basic", {})]),
        (["", "Digest realm=x", "Bearer"], [("bearer", {})]),
    ],
)
def test_challenges_are_parsed(headers: list[str], found: list[tuple[str, dict[str, str]]]) -> None:
    """Registries write them in every form that HTTP allows."""
    assert [(each.scheme, dict(each.parameters)) for each in challenges(headers)] == found


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"layers": [{"digest": "sha256:../..", "size": -1}]}'])
def test_a_garbled_manifest_is_no_package(data: bytes) -> None:
    """Anybody who may push can write one."""
    assert read_artifact(data, "words") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repository": "packages"}, "uploader: repository is not of the form"),
        ({"repository": "https://host/a"}, "uploader: repository is not of the form"),
        ({"repository": "host/Upper"}, "lower-case"),
        ({"repository": "host/a/../b"}, "uploader: repository is not of the form"),
        ({"repository": "me:word@host/a"}, "uploader: repository is not of the form"),
        ({"password": ""}, "belong together"),
        ({"ca_file": "/no/such/file"}, "uploader.ca_file"),
        ({"verify_key": "no key"}, "uploader.verify_key"),
        ({"verify_key": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"}, "uploader.verify_key"),
    ],
)
def test_invalid_options_are_refused(change: dict[str, object], message: str) -> None:
    """The error names the key, before a connection is made."""
    given = {"repository": "host:5000/team/heron", "username": "u", "password": "p", **change}
    with pytest.raises(ConfigError, match=message):
        OciUploader.open(given)


def test_the_hub_of_docker_has_another_server() -> None:
    """Its name in references is not the address of its interface."""
    assert OciOptions("docker.io/me/heron").url == "https://registry-1.docker.io/v2/"
    assert OciOptions("127.0.0.1:5000/me", plain_http=True).url == "http://127.0.0.1:5000/v2/"
