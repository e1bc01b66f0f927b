"""What versions of a program share in a real registry, and what happens to damaged layers."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from registry_front import Front

from heron.errors import PackageError
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import pack, unpack
from heron_testing_servers.oci_registry import OciRegistry
from heron_uploader_oci import OciUploader
from heron_uploader_oci.artifact import decode_manifest
from heron_uploader_oci.pieces import CutPackage
from heron_uploader_oci.registry import Registry

MODEL_BYTES = 300_000


@pytest.fixture
def uploader(options: dict[str, object]) -> OciUploader:
    return OciUploader.open(options)


class Program:
    """A program of a file, forty modules and a model, in versions."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "source"
        self._source.mkdir()
        self._folder = folder
        modules = [f"module_{number}.py" for number in range(40)]
        for name in modules:
            (self._source / name).write_text(f"NAME = {name!r}\n" * 200, encoding="utf-8")
        (self._source / "model.bin").write_bytes(secrets.token_bytes(MODEL_BYTES))
        self.files = (*modules, "model.bin", "words.py")

    def version(self, number: int) -> Path:
        """Pack a version, which differs in one file."""
        (self._source / "words.py").write_text(f"VERSION = {number}\n", encoding="utf-8")
        package = self._folder / f"package-{number}"
        package.unlink(missing_ok=True)
        pack(self._source, self.files, PackageManifest("words", "words", {}), package)
        return package


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def layers_of(registry: Registry, uri: str) -> list[str]:
    stored = registry.manifest(uri.rpartition("/")[2])
    manifest = decode_manifest(stored.data) if stored else None
    assert manifest is not None
    return [each.digest for each in manifest.layers]


def test_a_new_version_uploads_what_has_changed(
    uploader: OciUploader, registry: Registry, program: Program, front: Front, tmp_path: Path
) -> None:
    """The model and the other modules are in the registry already; each version unpacks to its own files."""
    uris = [uploader.upload(program.version(1), "words")]
    assert front.sent_bytes > MODEL_BYTES
    front.sent_bytes = 0
    front.requests.clear()
    uris.append(uploader.upload(program.version(2), "words"))
    assert front.sent_bytes < MODEL_BYTES / 20
    first, second = (layers_of(registry, each) for each in uris)
    assert len(first) == len(second) >= 4
    assert 1 <= len(set(second) - set(first)) <= 3  # the manifest, the group of the file, and the end of the archive
    for number, uri in enumerate(uris, 1):
        uploader.download(uri, tmp_path / "target")
        unpack(tmp_path / "target", tmp_path / f"files-{number}")
        assert (tmp_path / f"files-{number}" / "words.py").read_text() == f"VERSION = {number}\n"


def test_two_topologies_share_layers(uploader: OciUploader, program: Program, front: Front) -> None:
    """All packages of a profile are in one repository."""
    uploader.upload(program.version(1), "words")
    front.sent_bytes = 0
    uploader.upload(program.version(1), "words-of-others")
    assert front.sent_bytes < MODEL_BYTES / 20


def test_a_tampered_layer_is_refused_by_its_digest_and_replaced(
    uploader: OciUploader, program: Program, registry: Registry, oci_registry: OciRegistry, tmp_path: Path
) -> None:
    """The error names the layer. "Submit again" works, although a registry never replaces a blob."""
    package = program.version(1)
    uri = uploader.upload(package, "words")
    layers = layers_of(registry, uri)
    largest = max(CutPackage.read(package).pieces, key=lambda each: each.size_bytes).digest
    file = oci_registry.blob_file(largest.removeprefix("sha256:"))
    content = bytearray(file.read_bytes())
    content[1000] ^= 1
    file.write_bytes(content)
    message = rf"the SHA-256 of layer {layers.index(largest) + 1} of {len(layers)} is \w+, not {largest[7:]}"
    with pytest.raises(PackageError, match=message):
        uploader.download(uri, tmp_path / "target")
    assert not (tmp_path / "target").exists()
    for _ in range(2):
        assert uploader.upload(package, "words") == uri
        uploader.download(uri, tmp_path / "target")
        assert (tmp_path / "target").read_bytes() == package.read_bytes()
    assert len(layers_of(registry, uri)) == len(layers) + 1


def test_tags_stay_when_a_damaged_layer_is_replaced(
    uploader: OciUploader, program: Program, registry: Registry, oci_registry: OciRegistry, tmp_path: Path
) -> None:
    """A release stays a release, and a tag with the manifest from before keeps the package too."""
    package = program.version(1)
    uri = uploader.upload(package, "words")
    place = uri.rpartition("/")[2]
    other = uploader.upload(program.version(2), "words")
    for tag in ("live", "v1"):
        uploader.tag(uri, tag)
    uploader.tag(other, "v2")
    before = registry.manifest(place)
    assert before is not None
    largest = max(CutPackage.read(package).pieces, key=lambda each: each.size_bytes).digest
    file = oci_registry.blob_file(largest.removeprefix("sha256:"))
    file.write_bytes(b"X" + file.read_bytes()[1:])
    assert uploader.upload(program.version(1), "words") == uri
    after = registry.digest_of(place)
    assert after != before.digest
    assert {registry.digest_of(f"words..{each}") for each in ("live", "v1", "latest")} == {after}
    uploader.download(uploader.tagged("words", "live").uri, tmp_path / "target")
    assert {each.uri: each.tags for each in uploader.packages()} == {uri: ("latest", "live", "v1"), other: ("v2",)}
    uploader.upload(program.version(1), "words")
    assert registry.digest_of(place) == after  # its layers are whole, so it stays as it is
    registry.put_manifest("words..old", before.data)
    for tag in ("live", "v1", "latest"):
        uploader.untag("words", tag)
    assert {each.uri: each.tags for each in uploader.packages()} == {uri: ("old",), other: ("v2",)}
    uploader.undo(uri)
    assert registry.digest_of(place) == after


def test_a_registry_that_tells_no_sizes_has_its_layers(
    uploader: OciUploader, program: Program, front: Front, registry: Registry
) -> None:
    """The size of a layer is unknown then, and not 0."""
    uri = uploader.upload(program.version(1), "words")
    front.tells_sizes, front.sent_bytes = False, 0
    other = uploader.upload(program.version(1), "words-of-others")
    assert front.sent_bytes < MODEL_BYTES / 20
    assert layers_of(registry, other) == layers_of(registry, uri)


def test_layers_of_removed_packages_are_checked_on_request(
    options: dict[str, object], program: Program, oci_registry: OciRegistry, tmp_path: Path
) -> None:
    """The package of a killed topology is gone, and the registry still has its damaged layer for the next one."""
    package = program.version(1)
    uploader = OciUploader.open(options)
    uploader.undo(uploader.upload(package, "words"))
    largest = max(CutPackage.read(package).pieces, key=lambda each: each.size_bytes).digest
    file = oci_registry.blob_file(largest.removeprefix("sha256:"))
    file.write_bytes(b"X" + file.read_bytes()[1:])
    uri = uploader.upload(package, "words")
    with pytest.raises(PackageError, match=r"--set uploader.check_layers=true"):
        uploader.download(uri, tmp_path / "target")
    uploader.undo(uri)
    checking = OciUploader.open({**options, "check_layers": True})
    checking.download(checking.upload(package, "words"), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == package.read_bytes()


def test_a_truncated_layer_is_found_without_a_read(
    uploader: OciUploader, program: Program, registry: Registry, oci_registry: OciRegistry, tmp_path: Path
) -> None:
    """Another version shares the layer; the size that the registry tells shows the damage."""
    uri = uploader.upload(program.version(1), "words")
    largest = max(CutPackage.read(program.version(1)).pieces, key=lambda each: each.size_bytes).digest
    file = oci_registry.blob_file(largest.removeprefix("sha256:"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PackageError):
        uploader.download(uri, tmp_path / "target")
    second = program.version(2)
    uploader.download(uploader.upload(second, "words"), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == second.read_bytes()
    assert largest in layers_of(registry, uri)


def test_a_manifest_of_another_package_is_refused(
    uploader: OciUploader, program: Program, registry: Registry, tmp_path: Path
) -> None:
    """Anybody who may push can move the tag of a package."""
    first, second = (uploader.upload(program.version(number), "words") for number in (1, 2))
    other = registry.manifest(second.rpartition("/")[2])
    assert other is not None
    registry.put_manifest(first.rpartition("/")[2], other.data)
    with pytest.raises(PackageError, match="is of another package or garbled"):
        uploader.download(first, tmp_path / "target")
    registry.put_manifest("words..live", other.data.replace(b'"words"', b'"wordz"'))
    with pytest.raises(PackageError, match=r"words:live: the manifest .* is not of a package of that name"):
        uploader.tagged("words", "live")
    assert [each.uri for each in uploader.packages()] == [second]
    assert uploader.upload(program.version(1), "words") == first
    uploader.download(first, tmp_path / "target")


def test_a_download_continues_in_the_middle_of_a_layer(
    uploader: OciUploader, program: Program, front: Front, tmp_path: Path
) -> None:
    """A broken connection costs what was in transit, and the layer's digest is still checked."""
    package = program.version(1)
    uri = uploader.upload(package, "words")
    front.cut_after_bytes = 100_000
    front.requests.clear()
    uploader.download(uri, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == package.read_bytes()
    blobs = [each for each in front.requests if "/blobs/" in each]
    assert len(blobs) > len(set(blobs))
    assert front.cut_after_bytes == 0


def test_upload_and_tag_are_seen_by_another_driver(options: dict[str, object], program: Program) -> None:
    """Another machine has the same profile, and nothing else."""
    package = program.version(1)
    uri = OciUploader.open(options).upload(package, "words")
    OciUploader.open(options).tag(uri, "live")
    found = OciUploader.open(options).tagged("words", "live")
    assert (found.uri, found.size_bytes, found.tags) == (uri, package.stat().st_size, ("live",))
    assert 0 <= found.age_s < 600
