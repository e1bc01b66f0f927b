"""The calls of S3 that drivers share, with types and with translated errors."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass

from botocore.exceptions import ClientError

from heron_driver_kit.packages import CHUNK_BYTES
from heron_s3_kit.aws_client import aws_client
from heron_s3_kit.place import S3Place
from heron_s3_kit.s3_errors import S3Errors, code_of, server_time_s, translated

__all__ = ["Bucket", "BucketObject", "Condition", "happens"]

_GONE = {"NoSuchKey"}
_CHANGED = {"PreconditionFailed", "ConditionalRequestConflict"}


@dataclass(frozen=True, slots=True)
class BucketObject:
    """An object. Its age is by the server's clock; 0 if the server sends no time."""

    key: str
    size_bytes: int
    etag: str
    age_s: float


@dataclass(frozen=True, slots=True)
class Condition:
    """A put happens only if the object has this tag, or, for "", if no object exists."""

    etag: str = ""

    @property
    def arguments(self) -> dict[str, str]:
        """The condition as arguments of boto3."""
        return {"IfMatch": self.etag} if self.etag else {"IfNoneMatch": "*"}


class Bucket:
    """The objects of a bucket. Every call raises an error of `errors` when the server refuses or does not answer."""

    def __init__(self, options: S3Place, errors: S3Errors, timeout_s: float | None = None) -> None:
        """Create the client. The first call connects. With `timeout_s`, a call is tried once, within that time."""
        self.name = options.bucket
        self.where = f"bucket {options.bucket!r} at {options.endpoint_url or 'AWS'}"
        self._client = aws_client(
            "s3",
            options,
            errors.section,
            timeout_s,
            s3={"addressing_style": options.addressing},
            # Each part is sent with its MD5, which every server compares. Many servers do not know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        self._errors = errors

    def find(self, key: str) -> BucketObject | None:
        """Find an object. A list request is used, because the answer to a refused HEAD contains no reason."""
        return next((each for each in self.objects(key, most=1) if each.key == key), None)

    def objects(self, prefix: str, most: int | None = None) -> Iterator[BucketObject]:
        """List the objects whose keys begin with `prefix`: all, or the first `most`."""
        paging = {"PaginationConfig": {"MaxItems": most, "PageSize": most}} if most else {}
        with self._translated("listing"):
            for page in self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.name, Prefix=prefix, **paging
            ):
                now_s = server_time_s(page)
                for each in page.get("Contents", ()):
                    modified_s = each["LastModified"].timestamp()
                    age_s = max(0.0, now_s - modified_s) if now_s is not None else 0.0
                    yield BucketObject(each["Key"], each["Size"], each["ETag"].strip('"'), age_s)

    def put(self, key: str, data: bytes, md5: bytes, condition: Condition | None = None) -> bool:
        """Store an object in one request; False when the condition does not hold."""
        arguments = condition.arguments if condition else {}
        with self._translated(f"storing {key}"):
            return happens(
                lambda: self._client.put_object(
                    Bucket=self.name, Key=key, Body=data, ContentMD5=base64.b64encode(md5).decode(), **arguments
                ),
                unless=_GONE,  # an object with a tag in the condition
            )

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Return a small object and its tag; None when it does not exist."""
        with self._translated(f"reading {key}"):
            try:
                answer = self._client.get_object(Bucket=self.name, Key=key)
            except ClientError as error:
                if code_of(error) in _GONE:
                    return None
                raise
            with closing(answer["Body"]) as body:
                return body.read(), answer["ETag"].strip('"')

    def delete(self, key: str) -> None:
        """Remove an object; a missing object is not an error."""
        with self._translated(f"removing {key}"):
            self._client.delete_object(Bucket=self.name, Key=key)

    def read(self, key: str, offset: int, etag: str) -> Iterator[bytes]:
        """Yield the content from the offset on, while the object has this tag."""
        selected = {"Range": f"bytes={offset}-"} if offset else {}
        with self._translated(f"reading {key}"):
            body = self._client.get_object(Bucket=self.name, Key=key, IfMatch=f'"{etag}"', **selected)["Body"]
            try:
                yield from body.iter_chunks(CHUNK_BYTES)
            finally:
                body.close()

    def _translated(self, what: str) -> AbstractContextManager[None]:
        return translated(what, self.where, self._errors)


def happens(call: Callable[[], object], unless: Collection[str] = ()) -> bool:
    """Make a call; False when its condition does not hold, or the server refuses it with a code in `unless`."""
    try:
        call()
    except ClientError as error:
        if code_of(error) in {*_CHANGED, *unless}:
            return False
        raise
    return True
