"""The calls of S3 that drivers share, with types and with translated errors."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from heron.errors import ConfigError
from heron_driver_kit.packages import CHUNK_BYTES
from heron_s3_kit.place import S3Place
from heron_s3_kit.s3_errors import S3Errors, code_of, server_time_s, translated

__all__ = ["Bucket", "BucketObject", "Condition", "happens"]

_CONNECT_S = 5.0
_ANSWER_S = 10.0  # two attempts, with the time to connect, stay within the contract's 30 s
_ATTEMPTS = 2
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
        self._client = _client(options, errors.section, timeout_s)
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
                )
            )

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


def _client(options: S3Place, section: str, timeout_s: float | None) -> BaseClient:
    quick = timeout_s is not None
    config = Config(
        connect_timeout=min(_CONNECT_S, timeout_s / 2) if timeout_s else _CONNECT_S,
        read_timeout=min(_ANSWER_S, timeout_s / 2) if timeout_s else _ANSWER_S,
        retries={"mode": "standard", "total_max_attempts": 1 if quick else _ATTEMPTS},
        s3={"addressing_style": options.addressing},
        # Each part is sent with its MD5, which every server compares. Many servers do not know the newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        session = boto3.session.Session(
            aws_access_key_id=options.access_key_id or None,
            aws_secret_access_key=options.secret_access_key or None,
            aws_session_token=options.session_token or None,
            region_name=options.region or None,
            profile_name=options.aws_profile or None,
        )
        return session.client(
            "s3",
            endpoint_url=options.endpoint_url or None,
            verify=str(Path(options.ca_file).expanduser()) if options.ca_file else None,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        msg = f"{section}: boto3 refuses the options: {error}; check region, endpoint_url and aws_profile"
        raise ConfigError(msg) from (None if options.secret_access_key else error)
