"""Uploads a package in parts, and continues the upload of a process that was killed.

The key contains the digest, so it identifies the pending upload of the same content. S3 tags a part with its MD5, so
the tag shows which parts are stored. Some kinds of encryption use other tags; then all parts are sent again.
"""

from __future__ import annotations

from heron.errors import PackageError
from heron.spi.uploader import Progress
from heron_driver_kit.packages import LocalPackage
from heron_s3_kit.bucket import Condition
from heron_uploader_s3.package_bucket import PackageBucket
from heron_uploader_s3.s3_errors import S3RefusedError

__all__ = ["put_in_parts"]

_MOST_PARTS = 10_000  # S3's limit


def put_in_parts(
    bucket: PackageBucket, key: str, package: LocalPackage, condition: Condition, progress: Progress
) -> bool:
    """Store the package; False when `condition` does not hold, or another process ended the upload.

    Raises:
        PackageError: when the server refuses; the parts are removed.
        InterruptedTransferError: when the server does not answer; the parts stay for the next attempt.
    """
    if len(package.part_md5) > _MOST_PARTS:
        msg = (
            f"package {package.path}: {package.size_bytes} bytes exceed the limit of {_MOST_PARTS} parts of "
            f"{package.part_bytes} bytes; raise uploader.part_bytes"
        )
        raise PackageError(msg)
    upload_id = next((each.upload_id for each in bucket.pending(key) if each.key == key), None) or bucket.begin(key)
    try:
        tags = _all_parts(bucket, key, upload_id, package, progress)
        done = tags is not None and bucket.complete(key, upload_id, tags, condition)
    except S3RefusedError:
        _discard(bucket, key, upload_id)
        raise
    if not done:  # another upload has stored the object, so this one can never be completed
        _discard(bucket, key, upload_id)
    return done


def _all_parts(
    bucket: PackageBucket, key: str, upload_id: str, package: LocalPackage, progress: Progress
) -> dict[int, str] | None:
    present = bucket.parts(key, upload_id)
    tags: dict[int, str] = {}
    for index, md5 in enumerate(package.part_md5):
        part = present.get(index + 1)
        tag = part.tag if part else None
        if tag != md5.hex():
            tag = bucket.put_part(key, upload_id, index + 1, package.part(index), md5)
            if tag is None:
                return None
        tags[index + 1] = tag
        progress(min((index + 1) * package.part_bytes, package.size_bytes), package.size_bytes)
    return tags


def _discard(bucket: PackageBucket, key: str, upload_id: str) -> None:
    """Remove the parts. A failure here must not hide the original error."""
    try:
        bucket.abort(key, upload_id)
    except PackageError:
        return  # `heron packages prune` can remove the parts later
