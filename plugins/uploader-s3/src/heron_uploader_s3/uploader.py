"""Stores packages as objects named by their content.

An upload accepts an existing object if its tag shows the same content. Otherwise it reads and compares the object, and
replaces it if it differs. Each put has the condition that the object has not changed since the upload looked at it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import quote, unquote, urlsplit

from heron.clock import monotonic_s
from heron.errors import PackageError
from heron.spi.options import decode_options
from heron.spi.uploader import PackageEntry, Uploader
from heron_driver_kit.packages import LocalPackage, PackageName, receive, sha256_of
from heron_s3_kit.bucket import BucketObject, Condition
from heron_uploader_s3.multipart import put_in_parts
from heron_uploader_s3.package_bucket import PackageBucket, S3Options

__all__ = ["S3Uploader"]

_ATTEMPTS = 5  # an attempt fails when another upload or an undo of the same content changes the object meanwhile
_APPEARS_S = 15.0  # with a late answer before it, the wait stays within the contract's 30 s
_POLL_S = 0.1


class S3Uploader(Uploader):
    """Packages in a bucket, for containers on every machine that can reach the server."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"listing", "server", "shared"})
    options_type: ClassVar[type] = S3Options

    def __init__(self, options: S3Options) -> None:
        self._options = options
        self._prefix = f"{options.prefix}/" if options.prefix else ""
        self._bucket = PackageBucket(options)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver. The first call connects."""
        return cls(decode_options(options, S3Options, "uploader"))

    def check(self, timeout_s: float) -> str:
        """Check that the bucket can be listed."""
        for _ in PackageBucket(self._options, timeout_s).objects(self._prefix, most=1):
            break
        return f"bucket {self._options.bucket} at {self._options.endpoint_url or 'AWS'}"

    def upload(self, package: Path, name: str) -> str:
        """Put the object, in parts if it is larger than one part."""
        PackageName(name, "")  # refuses an invalid name before the file is read
        local = LocalPackage.read(package, self._options.part_bytes)
        stored = PackageName(name, local.digest)
        key = f"{self._prefix}{stored.file}"
        for _ in range(_ATTEMPTS):
            found = self._bucket.find(key)
            if not (found and self._is_whole(found, local)):
                if not self._put(key, local, found):
                    continue
                self._confirm(key)
            self._moved(local.size_bytes, local.size_bytes)
            return self._uri(stored)
        msg = (
            f"package {self._uri(stored)}: {_ATTEMPTS} attempts failed because other commands store and remove the "
            "same package; try again later"
        )
        raise PackageError(msg)

    def undo(self, uri: str) -> None:
        """Remove the object, and the parts of uploads of it that were never completed."""
        key = f"{self._prefix}{self._stored(uri).file}"
        self._bucket.delete(key)
        for each in list(self._bucket.pending(key)):
            self._bucket.abort(each.key, each.upload_id)

    def download(self, uri: str, target: Path) -> None:
        """Get the object, and continue after a broken connection."""
        stored = self._stored(uri)
        found = self._bucket.find(f"{self._prefix}{stored.file}")
        if found is None:
            msg = f"package {uri}: not found; it was removed, submit the topology again"
            raise PackageError(msg)
        receive(
            lambda offset: self._bucket.read(found.key, offset, found.etag),
            target,
            stored.digest,
            f"package {uri}",
            self._moved,
            found.size_bytes,
        )

    def packages(self) -> tuple[PackageEntry, ...]:
        """List the objects below the prefix, and the uploads that were never completed."""
        return tuple(self._listed())

    def _listed(self) -> Iterator[PackageEntry]:
        for each in self._bucket.objects(self._prefix):
            if stored := self._named(each.key):
                yield PackageEntry(self._uri(stored), stored.name, each.size_bytes, each.age_s)
        for left in list(self._bucket.pending(self._prefix)):
            if stored := self._named(left.key):
                size = sum(part.size_bytes for part in self._bucket.parts(left.key, left.upload_id).values())
                yield PackageEntry(self._uri(stored), stored.name, size, left.age_s, whole=False)

    def _put(self, key: str, package: LocalPackage, replaced: BucketObject | None) -> bool:
        condition = Condition(replaced.etag if replaced else "")
        if len(package.part_md5) > 1:
            return put_in_parts(self._bucket, key, package, condition, self._moved)
        return self._bucket.put(key, package.part(0), package.part_md5[0], condition)

    def _confirm(self, key: str) -> None:
        """Wait until a stored object exists.

        A slow server that receives a second request to join parts may confirm it before the parts are joined. A server
        that stores nothing may confirm every request.
        """
        until_s = monotonic_s() + _APPEARS_S
        pause = threading.Event()
        while self._bucket.find(key) is None:
            if monotonic_s() >= until_s:
                msg = (
                    f"{self._bucket.where}: the server confirmed {key} but does not list it after {_APPEARS_S:g} s; "
                    "submit the topology again, or check uploader.endpoint_url"
                )
                raise PackageError(msg)
            pause.wait(_POLL_S)

    def _is_whole(self, found: BucketObject, package: LocalPackage) -> bool:
        if found.size_bytes != package.size_bytes:
            return False
        if found.etag == _expected_tag(package):
            return True
        return sha256_of(self._bucket.read(found.key, 0, found.etag)) == package.digest

    def _named(self, key: str) -> PackageName | None:
        return PackageName.of_file(key.removeprefix(self._prefix))

    def _uri(self, stored: PackageName) -> str:
        return f"s3://{quote(self._options.bucket)}/{quote(self._prefix)}{stored.file}"

    def _stored(self, uri: str) -> PackageName:
        """Parse a URI."""
        parts = urlsplit(uri)
        place, slash, file = unquote(parts.path).rpartition("/")
        stored = PackageName.of_file(file)
        if parts.scheme != "s3" or stored is None or parts.query or parts.fragment or not slash:
            msg = (
                f"package URI {uri!r:.300} is not of the form s3://BUCKET/PREFIX/NAME-SHA256.tar.gz; "
                "use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        if unquote(parts.netloc) != self._options.bucket or f"{place}/" != f"/{self._prefix}":
            msg = (
                f"package URI {uri!r:.300} leads out of uploader.bucket {self._options.bucket!r} and uploader.prefix "
                f"{self._options.prefix!r}; use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        return stored


def _expected_tag(package: LocalPackage) -> str:
    """Return the tag that S3 gives to this content if it arrived in these parts."""
    if len(package.part_md5) == 1:
        return package.part_md5[0].hex()
    parts = hashlib.md5(b"".join(package.part_md5), usedforsecurity=False)
    return f"{parts.hexdigest()}-{len(package.part_md5)}"
