"""A bucket of packages: objects, and multipart uploads."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
from botocore.exceptions import ClientError

from heron_s3_kit.bucket import Bucket, Condition, happens
from heron_s3_kit.place import S3Place
from heron_s3_kit.s3_errors import code_of, server_time_s
from heron_uploader_s3.s3_errors import S3_ERRORS

__all__ = ["PackageBucket", "Part", "PendingUpload", "S3Options"]

_LEAST_PART_BYTES = 5 * 1024 * 1024  # the limit of S3 for all parts but the last
_MOST_PART_BYTES = 1024 * 1024 * 1024
_GONE = {"NoSuchUpload", "InvalidPart", "InvalidPartOrder"}


class S3Options(S3Place, frozen=True):
    """The driver's section of a profile."""

    part_bytes: Annotated[int, msgspec.Meta(ge=_LEAST_PART_BYTES, le=_MOST_PART_BYTES)] = 8 * 1024 * 1024


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


class PackageBucket(Bucket):
    """Every call raises PackageError when the server refuses, InterruptedTransferError when it does not answer."""

    def __init__(self, options: S3Options, timeout_s: float | None = None) -> None:
        """Create the client. The first call connects. With `timeout_s`, a call is tried once, within that time."""
        super().__init__(options, S3_ERRORS, timeout_s)

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
                    Bucket=self.name,
                    Key=key,
                    UploadId=upload_id,
                    PartNumber=number,
                    Body=data,
                    ContentMD5=base64.b64encode(md5).decode(),
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
            return happens(
                lambda: self._client.complete_multipart_upload(
                    Bucket=self.name,
                    Key=key,
                    UploadId=upload_id,
                    MultipartUpload={"Parts": listed},
                    **condition.arguments,
                ),
                unless=_GONE,
            )

    def abort(self, key: str, upload_id: str) -> None:
        """Remove the parts of an upload; a missing upload is not an error."""
        with self._translated(f"removing {key}"):
            happens(
                lambda: self._client.abort_multipart_upload(Bucket=self.name, Key=key, UploadId=upload_id), unless=_GONE
            )
