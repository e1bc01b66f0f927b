"""The calls of S3 that packages need, with types; errors are translated here and nowhere else."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from heron.driver_kit.packages import CHUNK_BYTES
from heron.errors import ConfigError
from heron_uploader_s3.options import S3Options
from heron_uploader_s3.s3_errors import code_of, server_time_s, translated

__all__ = ["Bucket", "Condition", "Part", "Pending", "StoredObject"]

_CONNECT_S = 5.0
_ANSWER_S = 10.0  # twice, with the connecting, stays within the contract's 30 s
_ATTEMPTS = 2
_CHANGED = {"PreconditionFailed", "ConditionalRequestConflict"}
_GONE = {"NoSuchUpload", "InvalidPart", "InvalidPartOrder"}


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object; its age is by the server's clock."""

    key: str
    size_bytes: int
    etag: str
    age_s: float


@dataclass(frozen=True, slots=True)
class Pending:
    """A multipart upload that has begun and not ended."""

    key: str
    upload_id: str
    age_s: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of such an upload that is there."""

    tag: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Condition:
    """What has to be there for a put to happen: the object with this tag, or, with "", none."""

    etag: str = ""

    @property
    def arguments(self) -> dict[str, str]:
        """As boto3 takes it."""
        return {"IfMatch": self.etag} if self.etag else {"IfNoneMatch": "*"}


class Bucket:
    """Every call raises PackageError when the server refuses, InterruptedTransferError when it does not answer."""

    def __init__(self, options: S3Options, timeout_s: float | None = None) -> None:
        """Connects with the first call; with `timeout_s` that has to be over by then."""
        self.name = options.bucket
        self.where = f"bucket {options.bucket!r} at {options.endpoint_url or 'AWS'}"
        self._client = _client(options, timeout_s)

    def find(self, key: str) -> StoredObject | None:
        """The object of that key. Asked as a list, since a HEAD says neither what is missing nor why it is refused."""
        return next((each for each in self.objects(key, most=1) if each.key == key), None)

    def objects(self, prefix: str, most: int | None = None) -> Iterator[StoredObject]:
        """Those whose keys begin with `prefix`, all or the first `most`."""
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
        """Stores an object at once; False when the condition does not hold."""
        with self._translated(f"storing {key}"):
            return _held(
                lambda: self._client.put_object(
                    Bucket=self.name, Key=key, Body=data, ContentMD5=_base64(md5), **condition.arguments
                )
            )

    def delete(self, key: str) -> None:
        """Removes it; one that is not there is no error."""
        with self._translated(f"removing {key}"):
            self._client.delete_object(Bucket=self.name, Key=key)

    def read(self, key: str, offset: int, etag: str) -> Iterator[bytes]:
        """Its content from the offset on, while it has this tag."""
        behind = {"Range": f"bytes={offset}-"} if offset else {}
        with self._translated(f"reading {key}"):
            body = self._client.get_object(Bucket=self.name, Key=key, IfMatch=f'"{etag}"', **behind)["Body"]
            try:
                yield from body.iter_chunks(CHUNK_BYTES)
            finally:
                body.close()

    def pending(self, prefix: str) -> Iterator[Pending]:
        """The multipart uploads whose keys begin with `prefix`."""
        with self._translated("listing uploads"):
            for page in self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self.name, Prefix=prefix):
                now_s = server_time_s(page)
                for each in page.get("Uploads", ()):
                    age_s = max(0.0, now_s - each["Initiated"].timestamp()) if now_s is not None else 0.0
                    yield Pending(each["Key"], each["UploadId"], age_s)

    def begin(self, key: str) -> str:
        """Begins a multipart upload and returns its id."""
        with self._translated(f"storing {key}"):
            return str(self._client.create_multipart_upload(Bucket=self.name, Key=key)["UploadId"])

    def parts(self, key: str, upload_id: str) -> dict[int, Part]:
        """The parts that are there, by their number from 1; empty when there is no such upload."""
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
        """Stores a part and returns its tag; None when there is no such upload any longer."""
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
        """Makes an object of the parts; False when the condition does not hold, or the upload is gone."""
        listed = [{"PartNumber": number, "ETag": parts[number]} for number in sorted(parts)]
        with self._translated(f"storing {key}"):
            return _held(
                lambda: self._client.complete_multipart_upload(
                    Bucket=self.name,
                    Key=key,
                    UploadId=upload_id,
                    MultipartUpload={"Parts": listed},
                    **condition.arguments,
                )
            )

    def abort(self, key: str, upload_id: str) -> None:
        """Removes the parts; an upload that is gone is no error."""
        with self._translated(f"removing {key}"):
            _held(lambda: self._client.abort_multipart_upload(Bucket=self.name, Key=key, UploadId=upload_id))

    def _translated(self, what: str) -> AbstractContextManager[None]:
        return translated(what, self.where)


def _held(call: Callable[[], object]) -> bool:
    """Whether a conditional call did what it should."""
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
        # Each part has its MD5 with it, which every server compares; the newer sums are unknown to many.
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
        msg = f"uploader: boto3 does not take these options: {error}; see region, endpoint_url and aws_profile"
        raise ConfigError(msg) from (None if options.secret_access_key else error)


def _base64(md5: bytes) -> str:
    return base64.b64encode(md5).decode()
