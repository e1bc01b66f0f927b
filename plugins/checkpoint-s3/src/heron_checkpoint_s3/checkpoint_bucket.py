"""A bucket of checkpoints: loads ranges, and continues after a broken connection."""

from __future__ import annotations

from contextlib import closing

from botocore.exceptions import ClientError

from heron.errors import CheckpointError
from heron_driver_kit.packages import CHUNK_BYTES
from heron_s3_kit.bucket import Bucket
from heron_s3_kit.place import S3Place
from heron_s3_kit.s3_errors import S3Errors, code_of

__all__ = ["CheckpointBucket", "UnansweredError"]

_MISSING = {"NoSuchKey", "404"}
_BEYOND_END = {"InvalidRange", "416"}


class UnansweredError(CheckpointError):
    """The server did not answer, or the connection broke."""


_ERRORS = S3Errors(
    section="checkpoint",
    subject="checkpoint object",
    space="delete checkpoints with `heron checkpoints`",
    rights="s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject",
    refused=CheckpointError,
    unanswered=UnansweredError,
    failed=CheckpointError,
)


class CheckpointBucket(Bucket):
    """Every call raises CheckpointError when the server refuses, UnansweredError when it does not answer."""

    def __init__(self, options: S3Place, timeout_s: float | None = None) -> None:
        """Create the client. The first call connects. With `timeout_s`, a call is tried once, within that time."""
        super().__init__(options, _ERRORS, timeout_s)

    def load(self, key: str, start: int, size_bytes: int | None) -> bytes | None:
        """Return the object from `start` on, at most `size_bytes` (1 or more); None when the object does not exist.

        After a broken connection it goes on with the rest of the same object, as long as bytes move.
        """
        pieces: list[bytes] = []
        have, tag = 0, ""
        while True:
            before = have
            try:
                with self._translated(f"loading {key}"):
                    selected = _selected(start + have, None if size_bytes is None else size_bytes - have, tag)
                    try:
                        answer = self._client.get_object(Bucket=self.name, Key=key, **selected)
                    except ClientError as error:
                        if code_of(error) in _MISSING:
                            return None
                        if code_of(error) in _BEYOND_END:
                            return b"".join(pieces)
                        raise
                    tag = answer["ETag"]
                    with closing(answer["Body"]) as body:
                        for piece in body.iter_chunks(CHUNK_BYTES):
                            pieces.append(piece)
                            have += len(piece)
                return b"".join(pieces)
            except UnansweredError:
                if have == before:
                    raise


def _selected(start: int, size_bytes: int | None, tag: str) -> dict[str, str]:
    """Return the arguments for a range, and for the object that has this tag ("": any)."""
    end = "" if size_bytes is None else start + size_bytes - 1
    selected = {"Range": f"bytes={start}-{end}"} if start or end != "" else {}
    return selected | ({"IfMatch": tag} if tag else {})
