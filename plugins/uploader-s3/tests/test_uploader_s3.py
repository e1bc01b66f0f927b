"""The S3 uploader: the contract on a real server, conditions, parts, refusals."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.client import BaseClient

from heron.errors import ConfigError, PackageError
from heron_s3_kit.bucket import Condition
from heron_testing.contracts.parts.uploader_listing import MOST_BYTES
from heron_testing.contracts.parts.uploader_weight import peak_bytes
from heron_testing.contracts.uploader import UploaderContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.ports import free_port
from heron_testing.relay import Relay
from heron_testing_servers.faketime import shifted_clock
from heron_testing_servers.s3 import S3Server
from heron_uploader_s3 import S3Uploader

MIB = 1024 * 1024


@pytest.fixture
def client(s3: S3Server) -> BaseClient:
    """A client beside the driver, as operators have."""
    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key, "region_name": s3.region}
    return boto3.client("s3", endpoint_url=s3.url, **keys)


@pytest.fixture
def bucket(client: BaseClient) -> str:
    """A bucket for each test."""
    name = f"b{secrets.token_hex(8)}"
    client.create_bucket(Bucket=name)
    return name


@pytest.fixture
def relay(s3: S3Server) -> Iterator[Relay]:
    """Connects the driver to the server, and can cut the connections."""
    relay = Relay(s3.address)
    yield relay
    relay.close()


@pytest.fixture
def options(s3: S3Server, relay: Relay, bucket: str) -> dict[str, object]:
    """Options with small parts, so that the small packages of tests have several."""
    host, port = relay.address
    return {
        "bucket": bucket,
        "prefix": "heron/packages",
        "endpoint_url": f"http://{host}:{port}",
        "region": s3.region,
        "access_key_id": s3.access_key,
        "secret_access_key": s3.secret_key,
        "part_bytes": 5 * MIB,
    }


class TestContract(UploaderContract):
    name = "s3"
    driver_class = S3Uploader

    @pytest.fixture(autouse=True)
    def operator(self, client: BaseClient) -> None:
        self.client = client

    @pytest.fixture
    def options(self, options: dict[str, object]) -> dict[str, object]:
        return options

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def damage(self, uri: str) -> None:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        content = self.client.get_object(Bucket=bucket, Key=key)["Body"].read()
        self.client.put_object(Bucket=bucket, Key=key, Body=b"X" + content[1:])


@pytest.fixture
def uploader(options: dict[str, object]) -> S3Uploader:
    return S3Uploader.open(options)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of three parts."""
    path = tmp_path / "package"
    path.write_bytes(b"0123456789abcdef" * (11 * MIB // 16))
    return path


def keys_in(client: BaseClient, bucket: str) -> list[str]:
    return [each["Key"] for each in client.list_objects_v2(Bucket=bucket).get("Contents", ())]


def uploads_in(client: BaseClient, bucket: str) -> list[dict[str, str]]:
    return list(client.list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


def test_a_second_upload_continues_an_interrupted_one(
    uploader: S3Uploader, package: Path, client: BaseClient, bucket: str, relay: Relay, tmp_path: Path
) -> None:
    """Stored parts are not sent again; on a slow line a package might otherwise never arrive."""

    def cut(moved: int, total: int) -> None:
        if moved < total:
            relay.refuses = True
            relay.cut()

    uploader.follow(cut)
    with pytest.raises(PackageError, match="gets no answer"):
        uploader.upload(package, "words")
    relay.refuses = False
    (left,) = uploads_in(client, bucket)
    first = client.list_parts(Bucket=bucket, Key=left["Key"], UploadId=left["UploadId"])["Parts"]
    taken = sum(each["Size"] for each in first)
    assert [(each.name, each.size_bytes, each.whole) for each in uploader.packages()] == [("words", taken, False)]

    moved: list[int] = []
    uploader.follow(lambda have, _: moved.append(have))
    uri = uploader.upload(package, "words")
    assert [each["PartNumber"] for each in first] == [1]
    assert moved == [5 * MIB, 10 * MIB, 11 * MIB, 11 * MIB]
    assert uploads_in(client, bucket) == []
    uploader.download(uri, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == package.read_bytes()


def test_simultaneous_uploads_in_parts_store_one_object_and_leave_no_parts(
    options: dict[str, object], package: Path, client: BaseClient, bucket: str, tmp_path: Path
) -> None:
    """Some uploads continue the parts of others, and some come too late. One complete object must remain."""
    uris: list[str] = []

    def upload() -> None:
        uris.append(S3Uploader.open(options).upload(package, "words"))

    threads = [threading.Thread(target=upload) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(uris) == 4
    (uri,) = set(uris)
    assert uploads_in(client, bucket) == []
    S3Uploader.open(options).download(uri, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == package.read_bytes()


def test_parts_with_other_content_are_sent_again(
    uploader: S3Uploader, package: Path, client: BaseClient, bucket: str, tmp_path: Path
) -> None:
    """Another program may have left parts under the same key."""
    uri = uploader.upload(package, "words")
    uploader.undo(uri)
    key = uri.removeprefix(f"s3://{bucket}/")
    foreign = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    client.upload_part(Bucket=bucket, Key=key, UploadId=foreign, PartNumber=1, Body=b"x" * (5 * MIB))
    uploader.download(uploader.upload(package, "words"), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == package.read_bytes()


def test_undo_removes_pending_parts(uploader: S3Uploader, package: Path, client: BaseClient, bucket: str) -> None:
    """Parts cost money, but a list of objects does not show them."""
    uri = uploader.upload(package, "words")
    client.create_multipart_upload(Bucket=bucket, Key=uri.removeprefix(f"s3://{bucket}/"))
    uploader.undo(uri)
    assert keys_in(client, bucket) == []
    assert uploads_in(client, bucket) == []


def test_a_put_does_not_replace_an_object_that_changed_since(
    uploader: S3Uploader, client: BaseClient, bucket: str
) -> None:
    """When two commands submit at once, the store decides which put happens."""
    of_driver = uploader._bucket
    md5 = hashlib.md5(b"one", usedforsecurity=False).digest()
    assert of_driver.put("k", b"one", md5, Condition())
    assert not of_driver.put("k", b"one", md5, Condition())
    found = of_driver.find("k")
    assert found is not None
    client.put_object(Bucket=bucket, Key="k", Body=b"other")
    assert not of_driver.put("k", b"one", md5, Condition(found.etag))


def test_a_download_continues_after_a_broken_connection(
    uploader: S3Uploader, package: Path, relay: Relay, tmp_path: Path
) -> None:
    """If each attempt started at the beginning, a large package would never arrive over a bad line."""
    uri = uploader.upload(package, "words")
    cuts = [4 * MIB, 8 * MIB]

    def cut(moved: int, _: int) -> None:
        if cuts and moved > cuts[0]:
            del cuts[0]
            relay.cut()

    uploader.follow(cut)
    uploader.download(uri, tmp_path / "target")
    assert cuts == []
    assert (tmp_path / "target").read_bytes() == package.read_bytes()


def refusal(options: dict[str, object], package: Path) -> str:
    with pytest.raises(PackageError) as caught:
        S3Uploader.open(options).upload(package, "words")
    return str(caught.value)


def test_a_wrong_key_is_named(options: dict[str, object], package: Path) -> None:
    """The message names the option of the wrong key, and does not show its value."""
    message = refusal({**options, "secret_access_key": "wrong-secret"}, package)
    assert "SignatureDoesNotMatch" in message
    assert "uploader.secret_access_key" in message
    assert "wrong-secret" not in message
    assert "uploader.access_key_id" in refusal({**options, "access_key_id": "nobody"}, package)


def test_a_bucket_that_does_not_exist_is_named(options: dict[str, object], package: Path) -> None:
    """The most common mistake, which `heron plugins check` must find too."""
    message = refusal({**options, "bucket": "no-such-bucket"}, package)
    assert "'no-such-bucket'" in message
    assert "create the bucket, or correct uploader.bucket" in message
    with pytest.raises(PackageError, match="create the bucket"):
        S3Uploader.open({**options, "bucket": "no-such-bucket"}).check(5.0)


def test_the_error_of_a_user_without_rights_lists_the_rights(
    options: dict[str, object], package: Path, s3: S3Server
) -> None:
    """An administrator needs the list to grant the rights."""
    s3.add_user("guest", "guest-secret")
    message = refusal({**options, "access_key_id": "guest", "secret_access_key": "guest-secret"}, package)
    assert "AccessDenied" in message
    assert "allow this user s3:ListBucket" in message


def test_a_server_that_cannot_write_keeps_nothing(
    uploader: S3Uploader, s3: S3Server, client: BaseClient, bucket: str, package: Path
) -> None:
    """A limit on the size of the server's files replaces a full disk."""
    before = resource.prlimit(s3.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(s3.pid, resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        with pytest.raises(PackageError, match=r"storing heron/packages/words-\w+\.tar\.gz is refused"):
            uploader.upload(package, "words")
    finally:
        resource.prlimit(s3.pid, resource.RLIMIT_FSIZE, before)
    assert keys_in(client, bucket) == []
    assert uploads_in(client, bucket) == []
    uploader.upload(package, "words")


def test_the_error_names_a_clock_that_is_an_hour_off(options: dict[str, object], package: Path) -> None:
    """S3 refuses signatures with a wrong time, and its answer does not suggest the clock."""
    code = (
        "import json, sys; from pathlib import Path; from heron_uploader_s3 import S3Uploader;"
        "S3Uploader.open(json.loads(sys.argv[1])).upload(Path(sys.argv[2]), 'words')"
    )
    for by, direction in (("+1h", "ahead of"), ("-1h", "behind")):
        ran = subprocess.run(
            [sys.executable, "-c", code, json.dumps(options), str(package)],
            env={**os.environ, **shifted_clock(by)},
            capture_output=True,
            text=True,
            check=False,
        )
        last = ran.stderr.splitlines()[-1]
        assert re.search(rf"this machine's clock is 3[56]\d\d s {direction} the server's; set the clock", last), (
            ran.stderr
        )


def test_half_a_gigabyte_needs_little_memory(options: dict[str, object], tmp_path: Path) -> None:
    """Packages can contain models and libraries, and the submitting machine can be small."""
    options["part_bytes"] = 8 * MIB
    assert peak_bytes(S3Uploader, options, 500 * MIB, tmp_path) < MOST_BYTES


def test_an_upload_to_a_server_that_never_answers_fails(options: dict[str, object], package: Path) -> None:
    """The server accepts connections and sends nothing; the command must still end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        message = refusal({**options, "endpoint_url": url}, package)
    assert "gets no answer" in message
    assert url in message


def test_the_error_names_a_server_that_is_not_running(options: dict[str, object], package: Path) -> None:
    """The message has the address without its long query."""
    url = f"http://127.0.0.1:{free_port()}"
    message = refusal({**options, "endpoint_url": url}, package)
    assert f"bucket {options['bucket']!r} at {url}: listing gets no answer: Could not connect" in message
    assert "max-keys" not in message


def test_boto3_finds_credentials_outside_the_profile(
    options: dict[str, object], s3: S3Server, package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A profile without secrets uses the files and variables of boto3."""
    for key in ("access_key_id", "secret_access_key"):
        del options[key]
    (tmp_path / "credentials").write_text(
        f"[team]\naws_access_key_id = {s3.access_key}\naws_secret_access_key = {s3.secret_key}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    S3Uploader.open({**options, "aws_profile": "team"}).upload(package, "words")
    assert "boto3 finds none" in refusal(options, package)
    with pytest.raises(ConfigError, match="aws_profile"):
        S3Uploader.open({**options, "aws_profile": "nobody"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bucket": ""}, "uploader.bucket"),
        ({"prefix": "/a"}, "uploader.prefix"),
        ({"part_bytes": 1024}, "uploader.part_bytes"),
        ({"addressing": "both"}, "uploader.addressing"),
        ({"secret_access_key": ""}, "belong together"),
        ({"access_key_id": "", "secret_access_key": "", "session_token": "t"}, "session_token belongs to"),
    ],
)
def test_invalid_options_are_refused(change: dict[str, object], message: str) -> None:
    """The error names the key, before a connection is made."""
    given = {"bucket": "b", "access_key_id": "a", "secret_access_key": "s", **change}
    with pytest.raises(ConfigError, match=message):
        S3Uploader.open(given)
