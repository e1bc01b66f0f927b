"""Stores packages as artifacts of an OCI registry: layers by content, tags by name."""

from __future__ import annotations

import hashlib
import ssl
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from heron.errors import PackageError
from heron.spi.options import decode_options
from heron.spi.uploader import LATEST, PackageEntry, Progress, Uploader
from heron_driver_kit.packages import InterruptedTransferError, PackageName, receive, sha256_of
from heron_uploader_oci.artifact import (
    CONFIG,
    Artifact,
    Descriptor,
    is_removed,
    new_manifest,
    read_artifact,
    removed_manifest,
)
from heron_uploader_oci.layer_reader import LayerReader
from heron_uploader_oci.oci_options import OciOptions, tls_context
from heron_uploader_oci.pieces import CutPackage, Piece
from heron_uploader_oci.registry import Registry, StoredManifest
from heron_uploader_oci.signatures import PublicKey, private_key, public_keys, require_signature, sign
from heron_uploader_oci.tags import name_tag, package_of, package_tag, parse_name_tag, signature_tag

__all__ = ["OciUploader"]

_SCHEME = "oci://"


class _Found(NamedTuple):
    stored: StoredManifest
    artifact: Artifact


class OciUploader(Uploader):
    """An artifact per package. Its URI is ``oci://HOST/PATH/NAME-SHA256``, and the last part is its tag."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"listing", "server", "shared", "tags"})
    options_type: ClassVar[type] = OciOptions

    def __init__(self, options: OciOptions, context: ssl.SSLContext, keys: tuple[PublicKey, ...]) -> None:
        self._options = options
        self._context = context
        self._keys = keys
        self._most = 0

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Check the options; the first call connects."""
        chosen = decode_options(options, OciOptions, "uploader")
        keys = public_keys(chosen.verify_key) if chosen.verify_key else ()
        return cls(chosen, tls_context(chosen.ca_file), keys)

    def check(self, timeout_s: float) -> str:
        """Read the private key, sign in, list the tags, and ask whether this user may store."""
        private_key(self._options.sign_key_file)
        with self._registry(timeout_s) as registry:
            registry.ping()
            registry.tags()
            stores = registry.may_store()
            may = "may store" if stores else "may only read, so `heron submit` needs --package"
            who = registry.user or "without credentials"
            policy = ", signatures are checked" if self._keys else ""
            return f"registry {self._options.host}, repository {self._options.path}, {who}: {may}{policy}"

    def upload(self, package: Path, name: str) -> str:
        """Store what the registry lacks, then the tag of the package, then `LATEST`.

        A stored package whose layers are whole stays as it is, with its tags and signatures.
        """
        self._most = 0
        cut = CutPackage.read(package)
        named = PackageName(name, cut.digest)
        latest = name_tag(name, LATEST)
        key = private_key(self._options.sign_key_file)
        signs = key is not None and (not self._keys or key.public_key() in self._keys)
        with self._registry() as registry:
            found = _find(registry, named)
            if self._keys and not signs:
                self._require_signed(registry, found, cut)
            if found is not None and _is_whole(registry, found, self._moved):
                stored = found.stored
            else:
                stored = self._store_package(registry, cut, named, found, signs=signs)
            if key is not None:
                sign(registry, key, self._options.repository, stored.digest)
            self._check_signature(registry, stored, f"package {name}")
            registry.put_manifest(latest, stored.data)
        return self._uri(package_tag(named))

    def undo(self, uri: str) -> None:
        """Remove the manifest; the registry's garbage collection removes the layers that no other has."""
        named = self._named(uri)
        if not self._options.delete:
            return
        with self._registry() as registry:
            digest = registry.digest_of(package_tag(named))
            if not digest or _keeping(registry, named):
                return
            registry.delete_manifest(digest)
            if signatures := registry.digest_of(signature_tag(digest)):
                registry.delete_manifest(signatures)

    def download(self, uri: str, target: Path) -> None:
        """Get the layers in order, and continue after a broken connection."""
        self._most = 0
        named, what = self._named(uri), f"package {uri}"
        with self._registry() as registry:
            stored = registry.manifest(package_tag(named))
            if stored is None:
                msg = f"{what}: not found; it was removed, submit the topology again"
                raise PackageError(msg)
            artifact = read_artifact(stored.data, named.name, named.digest)
            if artifact is None:
                msg = (
                    f"{what}: its manifest {stored.digest} is of another package or garbled; submit the topology again"
                )
                raise PackageError(msg)
            self._check_signature(registry, stored, what)
            source = LayerReader(registry, artifact.layers, what).read
            receive(source, target, named.digest, what, self._moved, artifact.size_bytes)

    def packages(self) -> tuple[PackageEntry, ...]:
        """Read the manifest of each package; the registry lists only tags."""
        with self._registry() as registry:
            tags = registry.tags()
            given: defaultdict[PackageName, list[str]] = defaultdict(list)
            for named, tag, _ in _tags(registry, tags):
                given[named].append(tag)
            return tuple(
                self._entry(known.artifact, registry.now_s(), *given[named])
                for named in filter(None, map(package_of, tags))
                if (known := _find(registry, named))
            )

    def tag(self, uri: str, tag: str) -> None:
        """Store the manifest of the package under the tag."""
        named = self._named(uri)
        place = name_tag(named.name, tag)
        with self._registry() as registry:
            stored = registry.manifest(package_tag(named))
            if stored is not None:
                registry.put_manifest(place, stored.data)
            if stored is None or registry.digest_of(place) != registry.digest_of(package_tag(named)):
                msg = f"package {uri}: not found; `heron packages list` shows what there is"
                raise PackageError(msg)

    def untag(self, name: str, tag: str) -> None:
        """Let the tag mean a new manifest, and remove that with its tag: some registries cannot remove a tag alone.

        A tag with such a manifest counts as removed, also when the registry then refuses to delete.
        """
        place = name_tag(name, tag)
        with self._registry() as registry:
            present = registry.manifest(place)
            if present is None or is_removed(present.data):
                return
            config = Descriptor.config()
            registry.put_blob(config.digest, config.size, CONFIG)
            stored = StoredManifest.of(removed_manifest())
            registry.put_manifest(place, stored.data)
            if self._options.delete:
                registry.delete_manifest(stored.digest)

    def tagged(self, name: str, tag: str) -> PackageEntry:
        """Read the manifest of the tag, and check its signature."""
        place = name_tag(name, tag)
        with self._registry() as registry:
            stored = registry.manifest(place)
            if stored is None or is_removed(stored.data):
                tags = sorted(tag for found, tag, _ in _tags(registry, registry.tags()) if found.name == name)
                there = f"its tags are {', '.join(tags)}" if tags else "it has no tags"
                msg = f"package {name}:{tag}: not found in {self._options.repository}; {there}"
                raise PackageError(msg)
            artifact = read_artifact(stored.data, name)
            if artifact is None:
                msg = (
                    f"package {name}:{tag}: the manifest {stored.digest} is not of a package of that name; move the tag"
                )
                raise PackageError(msg)
            self._check_signature(registry, stored, f"package {name}:{tag}")
            return self._entry(artifact, registry.now_s(), tag)

    def _moved(self, moved_bytes: int, total_bytes: int) -> None:
        """Report the most bytes so far: a layer may be read and then stored, or sent twice."""
        self._most = max(self._most, moved_bytes)
        super()._moved(self._most, total_bytes)

    def _registry(self, timeout_s: float | None = None) -> Registry:
        return Registry(self._options, self._context, timeout_s=timeout_s)

    def _store_package(
        self, registry: Registry, package: CutPackage, named: PackageName, found: _Found | None, *, signs: bool
    ) -> StoredManifest:
        """Store the layers that are missing, and the manifest; the tags of a damaged package move to the new one."""
        layers = tuple(self._store(registry, package, verify=self._options.check_layers or found is not None))
        if found is not None and found.artifact.layers == layers:
            return found.stored
        if found is not None and not signs and registry.digest_of(signature_tag(found.stored.digest)):
            msg = (
                f"package {package.path} is refused: the stored one has damaged layers, and the new manifest would "
                "have no signature; upload it with uploader.sign_key_file"
            )
            raise PackageError(msg)
        config = Descriptor.config()
        registry.put_blob(config.digest, config.size, CONFIG)
        stored = StoredManifest.of(new_manifest(named, layers, registry.now_s()))
        for each in (package_tag(named), *(_keeping(registry, named) if found else ())):
            registry.put_manifest(each, stored.data)
        return stored

    def _store(self, registry: Registry, package: CutPackage, *, verify: bool) -> Iterator[Descriptor]:
        """Store the pieces that are missing, and yield all layers.

        With `verify`, read those that are there. A registry never replaces a blob, so a damaged blob stays. Other
        pieces with the same bytes take its place.
        """
        moved = 0
        for piece in package.pieces:
            fits = registry.blob_fits(piece.digest, piece.size_bytes)
            damaged = fits is False
            if verify and fits:
                damaged = f"sha256:{sha256_of(registry.read_blob(piece.digest))}" != piece.digest
            if damaged and piece.size_bytes < 2:
                msg = f"layer {piece.digest} is damaged in {self._options.repository}; collect the registry's garbage"
                raise PackageError(msg)
            for each in package.halves(piece) if damaged else (piece,):
                if damaged or fits is None:
                    self._put(registry, package, each, moved)
                moved += each.size_bytes
                self._moved(moved, package.size_bytes)
                yield Descriptor.layer(each.digest, each.size_bytes)

    def _put(self, registry: Registry, package: CutPackage, piece: Piece, before: int) -> None:
        def content() -> Iterator[bytes]:
            sent = before
            for chunk in package.content(piece):
                yield chunk
                sent += len(chunk)
                self._moved(sent, package.size_bytes)

        registry.put_blob(piece.digest, piece.size_bytes, content)

    def _require_signed(self, registry: Registry, found: _Found | None, package: CutPackage) -> None:
        """Refuse an upload that no container would take."""
        if found is None:
            msg = (
                f"package {package.path} is refused: uploader.verify_key asks for signatures, and there is no key of "
                "it to sign with; set uploader.sign_key_file, or start a signed package with `heron submit --package`"
            )
            raise PackageError(msg)
        self._check_signature(registry, found.stored, f"package {found.artifact.package.name}")

    def _check_signature(self, registry: Registry, stored: StoredManifest, what: str) -> None:
        if self._keys:
            require_signature(registry, self._keys, stored.digest, what)

    def _entry(self, artifact: Artifact, now_s: float, *tags: str) -> PackageEntry:
        named = artifact.package
        age_s = 0.0 if artifact.created_s is None else max(0.0, now_s - artifact.created_s)
        return PackageEntry(
            self._uri(package_tag(named)),
            named.name,
            artifact.size_bytes,
            age_s,
            version=named.digest,
            tags=tuple(sorted(tags)),
        )

    def _uri(self, tag: str) -> str:
        return f"{_SCHEME}{self._options.repository}/{tag}"

    def _named(self, uri: str) -> PackageName:
        """Parse a URI."""
        named = package_of(uri.rpartition("/")[2])
        if named is None or uri != self._uri(package_tag(named)):
            msg = (
                f"package URI {uri!r:.300} is not of the form oci://HOST/PATH/NAME-SHA256, or not of "
                f"uploader.repository {self._options.repository!r}; use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        return named


def _find(registry: Registry, named: PackageName) -> _Found | None:
    stored = registry.manifest(package_tag(named))
    artifact = read_artifact(stored.data, named.name, named.digest) if stored else None
    return _Found(stored, artifact) if stored and artifact else None


def _is_whole(registry: Registry, found: _Found, report: Progress) -> bool:
    """Read the layers of a stored package."""
    artifact, read = found.artifact, hashlib.sha256()
    moved = 0
    try:
        for chunk in LayerReader(registry, artifact.layers, f"package {artifact.package.name}").read(0):
            read.update(chunk)
            moved += len(chunk)
            report(moved, artifact.size_bytes)
    except InterruptedTransferError:
        raise
    except PackageError:  # a layer is missing or damaged
        return False
    return read.hexdigest() == artifact.package.digest


def _keeping(registry: Registry, named: PackageName) -> tuple[str, ...]:
    """Return the registry's tags that keep a package."""
    places = [each for each in registry.tags() if (parse_name_tag(each) or ("",))[0] == named.name]
    return tuple(place for found, tag, place in _tags(registry, places) if found == named and tag != LATEST)


def _tags(registry: Registry, places: Iterable[str]) -> Iterator[tuple[PackageName, str, str]]:
    """Yield the package, the tag and the registry's tag of each that is a tag of a name.

    The package counts, not the manifest: a package whose damaged layers were replaced has two.
    """
    for place in places:
        if (parsed := parse_name_tag(place)) and (stored := registry.manifest(place)):
            name, tag = parsed
            if artifact := read_artifact(stored.data, name):
                yield artifact.package, tag, place
