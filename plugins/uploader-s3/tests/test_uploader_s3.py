"""The S3 uploader: the contract on a real server, and what is its own: conditions, parts, refusals."""

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
from heron_testing.contracts.uploader import UploaderContract
from heron_testing.contracts.uploader_listing import MOST_BYTES
from heron_testing.contracts.uploader_weight import peak_bytes
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_uploader_s3 import S3Uploader
from heron_uploader_s3.bucket import Condition
from servers.faketime import shifted_clock
from servers.s3 import S3Server
from servers.server_process import free_port

MIB = 1024 * 1024


@pytest.fixture
def client(s3: S3Server) -> BaseClient:
    """A client of its own, as an operator has."""
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
    """What stands between the driver and the server."""
    relay = Relay(s3.address)
    yield relay
    relay.close()


@pytest.fixture
def options(s3: S3Server, relay: Relay, bucket: str) -> dict[str, object]:
    """Small parts, so that packages of tests have some."""
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
    """The S3 uploader keeps the family's contract."""

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
    """Three parts."""
    path = tmp_path / "package"
    path.write_bytes(b"0123456789abcdef" * (11 * MIB // 16))
    return path


def keys_in(client: BaseClient, bucket: str) -> list[str]:
    return [each["Key"] for each in client.list_objects_v2(Bucket=bucket).get("Contents", ())]


def uploads_in(client: BaseClient, bucket: str) -> list[dict[str, str]]:
    return list(client.list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


def test_an_upload_that_breaks_off_is_gone_on_with(
    uploader: S3Uploader, package: Path, client: BaseClient, bucket: str, relay: Relay, tmp_path: Path
) -> None:
    """On a slow line the second attempt must not begin again: what is there is not sent a second time."""

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


def test_uploads_in_parts_at_once_agree_and_leave_no_parts(
    options: dict[str, object], package: Path, client: BaseClient, bucket: str, tmp_path: Path
) -> None:
    """Some find the parts of others and go on with them, some come too late: one object, whole, and nothing else."""
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


def test_parts_that_are_another_content_are_sent_again(
    uploader: S3Uploader, package: Path, client: BaseClient, bucket: str, tmp_path: Path
) -> None:
    """What lies about under our key need not be ours."""
    uri = uploader.upload(package, "words")
    uploader.undo(uri)
    key = uri.removeprefix(f"s3://{bucket}/")
    foreign = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    client.upload_part(Bucket=bucket, Key=key, UploadId=foreign, PartNumber=1, Body=b"x" * (5 * MIB))
    uploader.download(uploader.upload(package, "words"), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == package.read_bytes()


def test_undo_removes_parts_too(uploader: S3Uploader, package: Path, client: BaseClient, bucket: str) -> None:
    """Parts cost money and are seen by nobody."""
    uri = uploader.upload(package, "words")
    client.create_multipart_upload(Bucket=bucket, Key=uri.removeprefix(f"s3://{bucket}/"))
    uploader.undo(uri)
    assert keys_in(client, bucket) == []
    assert uploads_in(client, bucket) == []


def test_a_put_never_replaces_what_came_in_between(uploader: S3Uploader, client: BaseClient, bucket: str) -> None:
    """Two submits at once: the store decides, not the order of their looks at it."""
    inside = uploader._bucket
    md5 = hashlib.md5(b"one", usedforsecurity=False).digest()
    assert inside.put("k", b"one", md5, Condition())
    assert not inside.put("k", b"one", md5, Condition())
    found = inside.find("k")
    assert found is not None
    client.put_object(Bucket=bucket, Key="k", Body=b"other")
    assert not inside.put("k", b"one", md5, Condition(found.etag))


def test_a_download_goes_on_where_the_connection_broke(
    uploader: S3Uploader, package: Path, relay: Relay, tmp_path: Path
) -> None:
    """Half a gigabyte over a bad line would never arrive if it began again each time."""
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


def test_a_wrong_password_is_named(options: dict[str, object], package: Path) -> None:
    """Which of the two keys is wrong, and where they stand, without showing them."""
    said = refusal({**options, "secret_access_key": "wrong-secret"}, package)
    assert "SignatureDoesNotMatch" in said
    assert "uploader.secret_access_key" in said
    assert "wrong-secret" not in said
    assert "uploader.access_key_id" in refusal({**options, "access_key_id": "nobody"}, package)


def test_a_bucket_that_does_not_exist_is_named(options: dict[str, object], package: Path) -> None:
    """The most common mistake; also what `heron plugins check` has to find."""
    said = refusal({**options, "bucket": "no-such-bucket"}, package)
    assert "'no-such-bucket'" in said
    assert "make the bucket, or see uploader.bucket" in said
    with pytest.raises(PackageError, match="make the bucket"):
        S3Uploader.open({**options, "bucket": "no-such-bucket"}).check(5.0)


def test_a_user_who_may_nothing_there_is_told_what_to_allow(
    options: dict[str, object], package: Path, s3: S3Server
) -> None:
    """The list of what is needed is what the administrator asks for."""
    s3.add_user("guest", "guest-secret")
    said = refusal({**options, "access_key_id": "guest", "secret_access_key": "guest-secret"}, package)
    assert "AccessDenied" in said
    assert "allow this user s3:ListBucket" in said


def test_a_server_that_cannot_write_keeps_nothing(
    uploader: S3Uploader, s3: S3Server, client: BaseClient, bucket: str, package: Path
) -> None:
    """A full disk, as far as a test may fill one: the server's files end at a size."""
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


def test_a_clock_that_is_an_hour_off_is_named(options: dict[str, object], package: Path) -> None:
    """S3 refuses signatures of another time; nobody thinks of the clock first."""
    code = (
        "import json, sys; from pathlib import Path; from heron_uploader_s3 import S3Uploader;"
        "S3Uploader.open(json.loads(sys.argv[1])).upload(Path(sys.argv[2]), 'words')"
    )
    for by, said in (("+1h", "ahead of"), ("-1h", "behind")):
        ran = subprocess.run(
            [sys.executable, "-c", code, json.dumps(options), str(package)],
            env={**os.environ, **shifted_clock(by)},
            capture_output=True,
            text=True,
            check=False,
        )
        last = ran.stderr.splitlines()[-1]
        assert re.search(rf"this machine's clock is 3[56]\d\d s {said} the server's; set the clock", last), ran.stderr


def test_half_a_gigabyte_fits_into_little_memory(options: dict[str, object], tmp_path: Path) -> None:
    """Packages carry models and libraries; the machine that submits them may be small."""
    options["part_bytes"] = 8 * MIB
    assert peak_bytes(S3Uploader, options, 500 * MIB, tmp_path) < MOST_BYTES


def test_a_server_that_never_answers_is_given_up(options: dict[str, object], package: Path) -> None:
    """Accepts and is silent: the command has to end by itself."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        said = refusal({**options, "endpoint_url": url}, package)
    assert "gets no answer" in said
    assert url in said


def test_a_server_that_is_not_there_is_named(options: dict[str, object], package: Path) -> None:
    """One line, with the address and what to look at."""
    url = f"http://127.0.0.1:{free_port()}"
    said = refusal({**options, "endpoint_url": url}, package)
    assert f"bucket {options['bucket']!r} at {url}: listing gets no answer: Could not connect" in said
    assert "max-keys" not in said


def test_the_usual_credentials_are_found(
    options: dict[str, object], s3: S3Server, package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Profiles without secrets in them: boto3's own files and variables serve."""
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
    ("change", "said"),
    [
        ({"bucket": ""}, "uploader.bucket"),
        ({"prefix": "/a"}, "uploader.prefix"),
        ({"part_bytes": 1024}, "uploader.part_bytes"),
        ({"addressing": "both"}, "uploader.addressing"),
        ({"secret_access_key": ""}, "belong together"),
        ({"access_key_id": "", "secret_access_key": "", "session_token": "t"}, "session_token belongs to"),
    ],
)
def test_options_that_cannot_be_are_refused(change: dict[str, object], said: str) -> None:
    """Before anything is started, with the key."""
    given = {"bucket": "b", "access_key_id": "a", "secret_access_key": "s", **change}
    with pytest.raises(ConfigError, match=said):
        S3Uploader.open(given)
