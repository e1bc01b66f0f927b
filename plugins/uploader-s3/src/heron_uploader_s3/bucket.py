"""The calls of S3 that packages need, with types and with translated errors."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import boto3
import msgspec
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from heron.driver_kit.packages import CHUNK_BYTES
from heron.errors import ConfigError
from heron.spi.options import Secret
from heron_uploader_s3.s3_errors import code_of, server_time_s, translated

__all__ = ["Bucket", "Condition", "Part", "PendingUpload", "S3Options", "StoredObject"]

_LEAST_PART_BYTES = 5 * 1024 * 1024  # the limit of S3 for all parts but the last
_MOST_PART_BYTES = 1024 * 1024 * 1024
_CONNECT_S = 5.0
_ANSWER_S = 10.0  # two attempts, with the time to connect, stay within the contract's 30 s
_ATTEMPTS = 2
_CHANGED = {"PreconditionFailed", "ConditionalRequestConflict"}
_GONE = {"NoSuchUpload", "InvalidPart", "InvalidPartOrder"}


class S3Options(msgspec.Struct, frozen=True):
    """The driver's section of a profile. boto3 looks for an empty value in environment, files and machine role."""

    bucket: Annotated[str, msgspec.Meta(min_length=1)]
    prefix: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9!_.*'()=-]+(/[A-Za-z0-9!_.*'()=-]+)*)?$")] = ""
    region: str = ""
    endpoint_url: Annotated[str, msgspec.Meta(pattern=r"^(https?://.+)?$")] = ""
    addressing: Literal["auto", "path", "virtual"] = "auto"
    aws_profile: str = ""
    access_key_id: str = ""
    secret_access_key: Secret = ""
    session_token: Secret = ""
    ca_file: str = ""
    part_bytes: Annotated[int, msgspec.Meta(ge=_LEAST_PART_BYTES, le=_MOST_PART_BYTES)] = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        if bool(self.access_key_id) != bool(self.secret_access_key):
            msg = "access_key_id and secret_access_key belong together; give both or neither"
            raise ValueError(msg)
        if self.session_token and not self.access_key_id:
            msg = "session_token belongs to access_key_id and secret_access_key; give all three"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object. Its age is by the server's clock; 0 if the server sends no time."""

    key: str
    size_bytes: int
    etag: str
    age_s: float


@dataclass(frozen=True, slots=True)
class PendingUpload:
    """A multipart upload that is neither completed nor aborted."""

    key: str
    upload_id: str
    age_s: float


@dataclass(frozen=True, slots=True)
class Part:
    """A stored part of a pending upload."""

    tag: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A put happens only if the object has this tag, or, for "", if no object exists."""

    etag: str = ""

    @property
    def arguments(self) -> dict[str, str]:
        """The condition as arguments of boto3."""
        return {"IfMatch": self.etag} if self.etag else {"IfNoneMatch": "*"}


class Bucket:
    """Every call raises PackageError when the server refuses, InterruptedTransferError when it does not answer."""

    def __init__(self, options: S3Options, timeout_s: float | None = None) -> None:
        """Create the client. The first call connects. With `timeout_s`, a call is tried once, within that time."""
        self.name = options.bucket
        self.where = f"bucket {options.bucket!r} at {options.endpoint_url or 'AWS'}"
        self._client = _client(options, timeout_s)

    def find(self, key: str) -> StoredObject | None:
        """Find an object. A list request is used, because the answer to a refused HEAD contains no reason."""
        return next((each for each in self.objects(key, most=1) if each.key == key), None)

    def objects(self, prefix: str, most: int | None = None) -> Iterator[StoredObject]:
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
                    yield StoredObject(each["Key"], each["Size"], each["ETag"].strip('"'), age_s)

    def put(self, key: str, data: bytes, md5: bytes, condition: Condition) -> bool:
        """Store an object in one request; False when the condition does not hold."""
        with self._translated(f"storing {key}"):
            return _succeeds(
                lambda: self._client.put_object(
                    Bucket=self.name, Key=key, Body=data, ContentMD5=_base64(md5), **condition.arguments
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

    def pending(self, prefix: str) -> Iterator[PendingUpload]:
        """List the pending multipart uploads whose keys begin with `prefix`."""
        with self._translated("listing uploads"):
            for page in self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self.name, Prefix=prefix):
                now_s = server_time_s(page)
                for each in page.get("Uploads", ()):
                    age_s = max(0.0, now_s - each["Initiated"].timestamp()) if now_s is not None else 0.0
                    yield PendingUpload(each["Key"], each["UploadId"], age_s)

    def begin(self, key: str) -> str:
        """Begin a multipart upload and return its id."""
        with self._translated(f"storing {key}"):
            return str(self._client.create_multipart_upload(Bucket=self.name, Key=key)["UploadId"])

    def parts(self, key: str, upload_id: str) -> dict[int, Part]:
        """Return the stored parts by number, from 1; empty when the upload does not exist."""
        found: dict[int, Part] = {}
        with self._translated(f"storing {key}"):
            pages = self._client.get_paginator("list_parts").paginate(Bucket=self.name, Key=key, UploadId=upload_id)
            try:
                for page in pages:
                    for each in page.get("Parts", ()):
                        found[each["PartNumber"]] = Part(each["ETag"].strip('"'), each["Size"])
            except ClientError as error:
                if code_of(error) not in _GONE:
                    raise
        return found

    def put_part(self, key: str, upload_id: str, number: int, data: bytes, md5: bytes) -> str | None:
        """Store a part and return its tag; None when the upload no longer exists."""
        with self._translated(f"storing {key}"):
            try:
                answer = self._client.upload_part(
                    Bucket=self.name, Key=key, UploadId=upload_id, PartNumber=number, Body=data, ContentMD5=_base64(md5)
                )
            except ClientError as error:
                if code_of(error) in _GONE:
                    return None
                raise
        return str(answer["ETag"]).strip('"')

    def complete(self, key: str, upload_id: str, parts: Mapping[int, str], condition: Condition) -> bool:
        """Join the parts to an object; False when the condition does not hold, or the upload no longer exists."""
        listed = [{"PartNumber": number, "ETag": parts[number]} for number in sorted(parts)]
        with self._translated(f"storing {key}"):
            return _succeeds(
                lambda: self._client.complete_multipart_upload(
                    Bucket=self.name,
                    Key=key,
                    UploadId=upload_id,
                    MultipartUpload={"Parts": listed},
                    **condition.arguments,
                )
            )

    def abort(self, key: str, upload_id: str) -> None:
        """Remove the parts of an upload; a missing upload is not an error."""
        with self._translated(f"removing {key}"):
            _succeeds(lambda: self._client.abort_multipart_upload(Bucket=self.name, Key=key, UploadId=upload_id))

    def _translated(self, what: str) -> AbstractContextManager[None]:
        return translated(what, self.where)


def _succeeds(call: Callable[[], object]) -> bool:
    """Make a call; False when its condition does not hold, or its upload no longer exists."""
    try:
        call()
    except ClientError as error:
        if code_of(error) in _CHANGED | _GONE:
            return False
        raise
    return True


def _client(options: S3Options, timeout_s: float | None) -> BaseClient:
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
        msg = f"uploader: boto3 refuses the options: {error}; check region, endpoint_url and aws_profile"
        raise ConfigError(msg) from (None if options.secret_access_key else error)


def _base64(md5: bytes) -> str:
    return base64.b64encode(md5).decode()
