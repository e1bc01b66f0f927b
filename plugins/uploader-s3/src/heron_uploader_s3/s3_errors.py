"""The errors of uploads and downloads, and their words."""

from __future__ import annotations

from heron.errors import PackageError
from heron_driver_kit.packages import InterruptedTransferError
from heron_s3_kit.s3_errors import S3Errors

__all__ = ["S3_ERRORS", "S3RefusedError"]


class S3RefusedError(PackageError):
    """The server refused the request; nothing was stored."""


S3_ERRORS = S3Errors(
    section="uploader",
    subject="package",
    space="remove packages with `heron packages prune`",
    rights=(
        "s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and, for multipart uploads, "
        "s3:ListBucketMultipartUploads, s3:ListMultipartUploadParts and s3:AbortMultipartUpload"
    ),
    refused=S3RefusedError,
    unanswered=InterruptedTransferError,
    failed=PackageError,
)
