"""Turns refusals of the server and errors of boto3 into errors with a place and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004  # a class of botocore, not the built-in one
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ResponseStreamingError,
)

from heron.clock import wall_s
from heron.errors import HeronError

__all__ = ["S3Errors", "code_of", "server_time_s", "translated"]

_SKEW_S = 300.0  # S3 refuses signatures that are 15 minutes off; a third of that can explain a refusal

_KEYS = "check {section}.access_key_id and {section}.secret_access_key, or the credentials that boto3 finds"
_WRONG_KEY = f"the secret key is wrong; {_KEYS}"
_NEW_TOKEN = "get a new session token"  # noqa: S105 - a remedy
_RIGHTS = "allow this user {rights} there"
_SPACE = "{space}, or raise the quota"
_LOG = "read the server's log"
_LATER = "the server receives too many requests; try again later"
_REMEDIES = {
    "NoSuchBucket": "create the bucket, or correct {section}.bucket",
    "InvalidBucketName": "correct {section}.bucket",
    "PermanentRedirect": "set {section}.region to the region of the bucket",
    "AuthorizationHeaderMalformed": "set {section}.region to the region of the bucket",
    "IllegalLocationConstraintException": "set {section}.region to the region of the bucket",
    "InvalidAccessKeyId": _KEYS,
    "InvalidClientTokenId": _KEYS,
    "UnrecognizedClientException": _KEYS,
    "XAdminUserNotFound": _KEYS,
    "SignatureDoesNotMatch": _WRONG_KEY,
    "InvalidSignatureException": _WRONG_KEY,
    "ExpiredToken": _NEW_TOKEN,
    "ExpiredTokenException": _NEW_TOKEN,
    "InvalidToken": _NEW_TOKEN,
    "AccessDenied": _RIGHTS,
    "AccessDeniedException": _RIGHTS,
    "AllAccessDisabled": "unlock the account",
    "InsufficientStorage": _SPACE,
    "QuotaExceeded": _SPACE,
    "ServiceQuotaExceeded": _SPACE,
    "XMinioStorageFull": _SPACE,
    "XMinioAdminBucketQuotaExceeded": _SPACE,
    "EntityTooLarge": "the {subject} is larger than the server's limit; raise the limit",
    "BadDigest": "the {subject} changed during the upload, or the network damages data; try again",
    "InternalError": f"{_LOG}; its disk may be full",
    "SlowDown": _LATER,
    "ThrottlingException": _LATER,
    "LimitExceededException": "raise the quota of the account",
}
_SIGNATURE = {"AccessDenied", "403", "InvalidSignatureException"}  # the codes of a signature with a wrong time
_QUERY = re.compile(r'\?[^\s"]*')  # botocore's messages contain URLs with long queries, which help no reader
_CLOCK = "set the clock of this machine (or of the server)"


@dataclass(frozen=True, slots=True)
class S3Errors:
    """The errors of a family, and its words in their messages.

    `section` is the section of the profile, `subject` what the driver stores (``package``), `space` how people make
    room, and `rights` are the actions that the driver's user needs. `remedies` has the remedies for further codes of
    refusals, and with "" that for all unknown codes.
    """

    section: str
    subject: str
    space: str
    rights: str
    refused: type[HeronError]
    """The server refused the request; nothing was stored."""
    unanswered: type[HeronError]
    """The server did not answer, or the connection broke."""
    failed: type[HeronError]
    """boto3 could not make the request."""
    remedies: Mapping[str, str] = field(default_factory=dict)


def code_of(error: ClientError) -> str:
    """Return the error code of S3; "" if there is none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def server_time_s(response: Mapping[str, object]) -> float | None:
    """Return the time of the server's clock in the answer, in seconds since 1970; None if there is none."""
    metadata = response.get("ResponseMetadata")
    headers = metadata.get("HTTPHeaders") if isinstance(metadata, Mapping) else None
    date = headers.get("date") if isinstance(headers, Mapping) else None
    try:
        return parsedate_to_datetime(str(date)).timestamp() if date else None
    except ValueError:
        return None


@contextmanager
def translated(what: str, where: str, errors: S3Errors) -> Iterator[None]:
    """Turn errors of boto3 into `errors`. `what` names the operation, `where` the bucket."""
    try:
        yield
    except ClientError as error:
        raise errors.refused(_refusal(error, what, where, errors)) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        msg = f"{where}: {what} needs credentials, but boto3 finds none ({error}); {_worded(_KEYS, errors)}"
        raise errors.failed(msg) from error
    except (ConnectionError, HTTPClientError, ResponseStreamingError, IncompleteReadError) as error:
        msg = (
            f"{where}: {what} gets no answer: {_QUERY.sub('', str(error))}; "
            f"check that the server is running and that {errors.section}.endpoint_url and {errors.section}.region are "
            "correct"
        )
        raise errors.unanswered(msg) from error
    except BotoCoreError as error:
        msg = f"{where}: {what} failed: {error}; check the section {errors.section} of the profile"
        raise errors.failed(msg) from error


def _worded(remedy: str, errors: S3Errors) -> str:
    words = {"section": errors.section, "subject": errors.subject, "space": errors.space, "rights": errors.rights}
    return remedy.format_map(words)


def _refusal(error: ClientError, what: str, where: str, errors: S3Errors) -> str:
    code = code_of(error)
    known = {"": _LOG, **_REMEDIES, **errors.remedies}
    remedy = _worded(known.get(code, known[""]), errors)
    text = str(error.response.get("Error", {}).get("Message", "")).rstrip(".")
    now_s = server_time_s(error.response)
    skew_s = 0.0 if now_s is None else wall_s() - now_s
    if code == "RequestTimeTooSkewed" or (abs(skew_s) > _SKEW_S and code in _SIGNATURE):
        off = f"{abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} the server's"
        return f"{where}: {what} is refused: this machine's clock is {off}; {_CLOCK}"
    return f"{where}: {what} is refused: {code}{f' ({text})' if text else ''}; {remedy}"
