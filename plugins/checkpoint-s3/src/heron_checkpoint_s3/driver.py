"""Stores checkpoints as objects of a bucket. A put is atomic, so an object is complete or absent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Self

from heron.errors import CheckpointError
from heron.spi.checkpoint import CheckpointStore, StoredObject
from heron.spi.options import decode_options
from heron_checkpoint_s3.checkpoint_bucket import CheckpointBucket
from heron_driver_kit.checkpoint_names import check_name, check_prefix, check_range, is_name
from heron_s3_kit.place import S3Place

__all__ = ["S3CheckpointStore"]

_MOST_BYTES = 5 * 1024**3  # the limit of S3 for one request
_DELETES_AT_ONCE = 8  # boto3 keeps ten connections


class S3CheckpointStore(CheckpointStore):
    """Objects of a bucket, for containers on every machine that can reach the server."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"server", "shared"})
    options_type: ClassVar[type] = S3Place

    def __init__(self, options: S3Place) -> None:
        self._options = options
        self._prefix = f"{options.prefix}/" if options.prefix else ""
        self._bucket = CheckpointBucket(options)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver. The first call connects."""
        return cls(decode_options(options, S3Place, "checkpoint"))

    def check(self, timeout_s: float) -> str:
        """Check that the bucket can be listed."""
        for _ in CheckpointBucket(self._options, timeout_s).objects(self._prefix, most=1):
            break
        return f"bucket {self._options.bucket} at {self._options.endpoint_url or 'AWS'}"

    def store(self, name: str, data: bytes) -> None:
        """Put the object in one request, with its MD5, which the server compares."""
        check_name(name)
        if len(data) > _MOST_BYTES:
            msg = (
                f"checkpoint object {name}: {len(data)} bytes exceed the limit of S3, {_MOST_BYTES} bytes; "
                "give the component more tasks"
            )
            raise CheckpointError(msg)
        self._bucket.put(f"{self._prefix}{name}", data, hashlib.md5(data, usedforsecurity=False).digest())

    def load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        """Get the range of the object."""
        check_name(name)
        check_range(name, start, size_bytes)
        key = f"{self._prefix}{name}"
        # S3 has no empty range.
        data = b"" if size_bytes == 0 else self._bucket.load(key, start, size_bytes)
        if data is None or len(data) < (size_bytes or 0) or not data:
            found = self._bucket.find(key)
            if data is None or found is None:
                msg = f"checkpoint object {name}: not found in {self._bucket.where}; use another checkpoint"
                raise CheckpointError(msg)
            check_range(name, start, size_bytes, found.size_bytes)
        return data

    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        """List the keys below the prefix."""
        check_prefix(prefix)
        found = (
            StoredObject(each.key.removeprefix(self._prefix), each.size_bytes, each.age_s)
            for each in self._bucket.objects(f"{self._prefix}{prefix}/")
        )
        return tuple(sorted((each for each in found if is_name(each.name)), key=lambda each: each.name))

    def dispose(self, names: Iterable[str]) -> None:
        """Delete the objects, a few at a time."""
        keys = []
        for name in names:
            check_name(name)
            keys.append(f"{self._prefix}{name}")
        with ThreadPoolExecutor(_DELETES_AT_ONCE) as threads:
            for done in [threads.submit(self._bucket.delete, key) for key in keys]:
                done.result()
