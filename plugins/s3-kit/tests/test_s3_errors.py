"""Errors of S3 in the words of a family."""

from __future__ import annotations

import pytest
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, NoCredentialsError

from heron.errors import PackageError, SinkError, StateError
from heron_s3_kit.s3_errors import S3Errors, translated

ERRORS = S3Errors("store", "record", "remove records", "s3:Rights", StateError, SinkError, PackageError)


def message(error: Exception, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught, translated("storing k", "bucket 'b' at AWS", ERRORS):
        raise error
    return str(caught.value)


def refused(code: str, text: str = "") -> str:
    return message(ClientError({"Error": {"Code": code, "Message": text}}, "PutObject"), StateError)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("NoSuchBucket", "create the bucket, or correct store.bucket"),
        ("PermanentRedirect", "set store.region to the region of the bucket"),
        ("SignatureDoesNotMatch", "the secret key is wrong; check store.access_key_id and store.secret_access_key, or"),
        ("AccessDenied", "allow this user s3:Rights there"),
        ("QuotaExceeded", "remove records, or raise the quota"),
        ("EntityTooLarge", "the record is larger than the server's limit"),
        ("BadDigest", "the record changed during the upload"),
        ("SomethingNew", "read the server's log"),
    ],
)
def test_a_refusal_names_the_place_the_code_and_the_remedy_of_the_family(code: str, remedy: str) -> None:
    """People see the key of their own section."""
    assert refused(code, "No.").startswith(f"bucket 'b' at AWS: storing k is refused: {code} (No); {remedy}")


def test_braces_in_a_text_of_the_server_are_kept() -> None:
    """A server may answer anything."""
    assert "{section}" in refused("InternalError", "a {section} {0}")


def test_each_kind_of_failure_has_its_class() -> None:
    """The driver of one family tries again after a lost answer, and not after a refusal."""
    text = message(EndpointConnectionError(endpoint_url="http://s3/b?max-keys=1"), SinkError)
    assert "gets no answer" in text
    assert "max-keys" not in text
    assert "store.endpoint_url and store.region" in text
    assert "check store.access_key_id" in message(NoCredentialsError(), PackageError)
    assert "check the section store of the profile" in message(BotoCoreError(), PackageError)
