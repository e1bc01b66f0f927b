"""The bucket policy in docs/production.md is sufficient for the S3 uploader and allows nothing else."""

from __future__ import annotations

import json
import re
import secrets
from pathlib import Path

import boto3
import pytest

from heron.errors import PackageError
from heron_testing_servers.s3 import S3Server
from heron_uploader_s3 import S3Uploader

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "production.md").read_text(encoding="utf-8")
MIB = 1024 * 1024
PART_BYTES = 5 * MIB


@pytest.fixture
def uploader(s3: S3Server) -> S3Uploader:
    """The uploader of a user with the rights of the page, in a bucket of another user."""
    name = f"user{secrets.token_hex(4)}"
    s3.add_user(name, "users-secret")
    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key, "region_name": s3.region}
    client = boto3.client("s3", endpoint_url=s3.url, **keys)
    client.create_bucket(Bucket=name)
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    policy = text.replace("my-heron-packages", name).replace('{"AWS": "USER"}', json.dumps({"AWS": [name]}))
    client.put_bucket_policy(Bucket=name, Policy=policy)
    return S3Uploader.open(
        {
            "bucket": name,
            "prefix": "packages",
            "endpoint_url": s3.url,
            "region": s3.region,
            "access_key_id": name,
            "secret_access_key": "users-secret",
            "part_bytes": PART_BYTES,
        }
    )


class GivenUpError(Exception):
    """A command that ends during an upload."""


def give_up(_moved: int, _total: int) -> None:
    """Raise at the first progress."""
    raise GivenUpError


def test_the_policy_on_the_page_is_enough(uploader: S3Uploader, tmp_path: Path) -> None:
    """Small and large packages, a continued upload, the list, removal, and orphaned parts."""
    package, target = tmp_path / "package", tmp_path / "target"
    for size in (1000, 2 * PART_BYTES + 1):
        package.write_bytes(b"x" * size)
        uri = uploader.upload(package, f"words-{size}")
        assert uploader.upload(package, f"words-{size}") == uri
        uploader.download(uri, target)
        assert target.read_bytes() == package.read_bytes()
    uploader.follow(give_up)
    for name in ("again", "left"):
        with pytest.raises(GivenUpError):
            uploader.upload(package, name)
    uploader.follow(lambda _moved, _total: None)
    assert sorted(each.name for each in uploader.packages() if not each.whole) == ["again", "left"]
    uploader.download(uploader.upload(package, "again"), target)
    assert target.read_bytes() == package.read_bytes()
    for each in uploader.packages():
        uploader.undo(each.uri)
    assert uploader.packages() == ()
    assert uploader.check(5.0)


def test_the_policy_on_the_page_is_no_more_than_that(uploader: S3Uploader, s3: S3Server, tmp_path: Path) -> None:
    """Another prefix of the bucket belongs to other users."""
    (tmp_path / "package").write_bytes(b"x")
    bucket = uploader.packages() or uploader.upload(tmp_path / "package", "words").split("/")[2]
    options = {"bucket": bucket, "prefix": "others", "endpoint_url": s3.url, "region": s3.region}
    keys = {"access_key_id": str(bucket), "secret_access_key": "users-secret"}
    with pytest.raises(PackageError, match="AccessDenied"):
        S3Uploader.open({**options, **keys}).upload(tmp_path / "package", "words")
