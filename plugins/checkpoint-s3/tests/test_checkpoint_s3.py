"""The S3 checkpoint store: the contract on a real server, ranges, broken connections, refusals."""

from __future__ import annotations

import resource
import secrets
from collections.abc import Iterator

import boto3
import pytest
from botocore.client import BaseClient

from heron.clock import monotonic_s
from heron.errors import CheckpointError, ConfigError
from heron_checkpoint_s3 import S3CheckpointStore, driver
from heron_testing.contracts.checkpoint import CheckpointStoreContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.s3 import S3Server

NAME = "words/words-1/0000000001/task-1"
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
    host, port = relay.address
    return {
        "bucket": bucket,
        "prefix": "heron/checkpoints",
        "endpoint_url": f"http://{host}:{port}",
        "region": s3.region,
        "access_key_id": s3.access_key,
        "secret_access_key": s3.secret_key,
    }


class TestContract(CheckpointStoreContract):
    name = "s3"
    driver_class = S3CheckpointStore

    @pytest.fixture
    def options(self, options: dict[str, object]) -> dict[str, object]:
        return options

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)


@pytest.fixture
def store(options: dict[str, object]) -> S3CheckpointStore:
    return S3CheckpointStore.open(options)


def refusal(options: dict[str, object]) -> str:
    with pytest.raises(CheckpointError) as caught:
        S3CheckpointStore.open(options).store(NAME, b"state")
    return str(caught.value)


def test_keys_are_below_the_prefix(store: S3CheckpointStore, client: BaseClient, bucket: str) -> None:
    """Two profiles share a bucket. Keys that no store has written are not listed."""
    store.store(NAME, b"state")
    for key in (f"other/{NAME}", "heron/checkpoints/words/words-1/.hidden", "heron/checkpoints/words/a b"):
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    assert client.get_object(Bucket=bucket, Key=f"heron/checkpoints/{NAME}")["Body"].read() == b"state"
    assert [each.name for each in store.list("words")] == [NAME]


def test_more_objects_than_a_page_of_the_list(
    options: dict[str, object], s3: S3Server, client: BaseClient, bucket: str
) -> None:
    """S3 lists a thousand objects at a time. No relay: the server closes the connection after each delete."""
    store = S3CheckpointStore.open({**options, "endpoint_url": s3.url})
    names = [f"words/words-1/0000000001/task-{task:04d}" for task in range(1005)]
    for name in names:
        client.put_object(Bucket=bucket, Key=f"heron/checkpoints/{name}", Body=b"")
    assert [each.name for each in store.list("words")] == names
    store.dispose(names)
    assert store.list("words") == ()


def test_a_load_continues_after_a_broken_connection(
    store: S3CheckpointStore, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a bad line a large state would never arrive otherwise. The rest is of the same object."""
    data = bytes(range(256)) * (8 * MIB // 256)
    store.store(NAME, data)
    asked: list[dict[str, str]] = []
    get = store._bucket._client.get_object

    def get_and_cut(**arguments: str) -> object:
        answer = get(**arguments)
        asked.append(arguments)
        if len(asked) < 3:
            pieces = answer["Body"].iter_chunks

            def cut(size: int) -> Iterator[bytes]:
                for count, piece in enumerate(pieces(size)):
                    yield piece
                    if count == 1:
                        relay.cut()

            monkeypatch.setattr(answer["Body"], "iter_chunks", cut)
        return answer

    monkeypatch.setattr(store._bucket._client, "get_object", get_and_cut)
    assert store.load(NAME, 10, 8 * MIB - 20) == data[10:-10]
    assert [each["Range"].rpartition("-")[2] for each in asked] == [str(8 * MIB - 11)] * 3
    assert ["IfMatch" in each for each in asked] == [False, True, True]


def test_a_load_over_a_line_that_breaks_without_a_byte_fails(store: S3CheckpointStore, relay: Relay) -> None:
    """A load that tries for ever would hang the restore."""
    store.store(NAME, b"state")
    relay.refuses = True
    relay.cut()
    with pytest.raises(CheckpointError, match=r"gets no answer.*checkpoint\.endpoint_url"):
        store.load(NAME)


def test_a_slow_server_is_waited_for(store: S3CheckpointStore, relay: Relay) -> None:
    """Slow is not silent: a checkpoint over a long line takes its time."""
    relay.delay_s = 0.3
    start_s = monotonic_s()
    store.store(NAME, b"state")
    assert store.load(NAME) == b"state"
    assert monotonic_s() - start_s >= 0.6


def test_a_server_that_cannot_write_keeps_the_former_object(
    store: S3CheckpointStore, s3: S3Server, client: BaseClient, bucket: str
) -> None:
    """A limit on the size of the server's files replaces a full disk."""
    store.store(NAME, b"former")
    before = resource.prlimit(s3.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(s3.pid, resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        with pytest.raises(CheckpointError, match=f"storing heron/checkpoints/{NAME} is refused"):
            store.store(NAME, bytes(2 * MIB))
    finally:
        resource.prlimit(s3.pid, resource.RLIMIT_FSIZE, before)
    assert store.load(NAME) == b"former"
    assert [each["Key"] for each in client.list_objects_v2(Bucket=bucket)["Contents"]] == [f"heron/checkpoints/{NAME}"]


def test_a_wrong_key_is_named(options: dict[str, object]) -> None:
    """The message names the option of the wrong key, and does not show its value."""
    message = refusal({**options, "secret_access_key": "wrong-secret"})
    assert "SignatureDoesNotMatch" in message
    assert "checkpoint.secret_access_key" in message
    assert "wrong-secret" not in message


def test_a_bucket_that_does_not_exist_is_named(options: dict[str, object]) -> None:
    """The most common mistake, which `heron plugins check` must find too."""
    assert "create the bucket, or correct checkpoint.bucket" in refusal({**options, "bucket": "no-such-bucket"})
    with pytest.raises(CheckpointError, match="create the bucket"):
        S3CheckpointStore.open({**options, "bucket": "no-such-bucket"}).check(5.0)


def test_a_user_without_rights_is_told_which(options: dict[str, object], s3: S3Server) -> None:
    """An administrator needs the list to grant the rights."""
    s3.add_user("checkpoint-guest", "guest-secret")
    message = refusal({**options, "access_key_id": "checkpoint-guest", "secret_access_key": "guest-secret"})
    assert "AccessDenied" in message
    assert "allow this user s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject there" in message


def test_an_object_above_the_limit_is_refused(store: S3CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the size, the limit and the remedy; nothing is sent."""
    monkeypatch.setattr(driver, "_MOST_BYTES", 4)
    store.store(NAME, b"four")
    with pytest.raises(CheckpointError, match=r"task-1: 5 bytes exceed the limit of S3, 4 bytes; give .* more tasks"):
        store.store(NAME, b"state")
    assert store.load(NAME) == b"four"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bucket": ""}, "checkpoint.bucket"),
        ({"prefix": "/a"}, "checkpoint.prefix"),
        ({"part_bytes": 8 * MIB}, "checkpoint.part_bytes"),
        ({"secret_access_key": ""}, "belong together"),
        ({"access_key_id": "", "secret_access_key": "", "session_token": "t"}, "session_token belongs to"),
    ],
)
def test_invalid_options_are_refused(change: dict[str, object], message: str) -> None:
    """The error names the key, before a connection is made."""
    with pytest.raises(ConfigError, match=message):
        S3CheckpointStore.open({"bucket": "b", "access_key_id": "a", "secret_access_key": "s", **change})
