"""The store of views in Redis: its contract on a real server, its keys, and refusals."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from heron.errors import ConfigError, StoreError
from heron.spi.store import Batch, Reading
from heron_store_redis import RedisViewStore
from heron_store_redis import driver as driver_module
from heron_testing.contracts.parts.store_writers import seen
from heron_testing.contracts.store import ViewStoreContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.redis import RedisServer

Options = dict[str, object]


@pytest.fixture
def relay(redis_server: RedisServer) -> Iterator[Relay]:
    """Connects the driver to the server, and can cut the connections."""
    relay = Relay(redis_server.address)
    yield relay
    relay.close()


@pytest.fixture
def password_file(tmp_path: Path, redis_server: RedisServer) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{redis_server.password}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def options(relay: Relay, password_file: Path) -> Options:
    host, port = relay.address
    return {"host": host, "port": port, "password_file": str(password_file), "prefix": "views", "timeout_s": 4.0}


@pytest.fixture
def store(options: Options) -> Iterator[RedisViewStore]:
    """A store whose keys are its own."""
    store = RedisViewStore.open({**options, "prefix": f"p{secrets.token_hex(4)}"})
    yield store
    store.drop("view")
    store.close()


@pytest.fixture
def operator(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """A connection that sees all keys."""
    host, port = redis_server.address
    with redis.Redis(host=host, port=port, password=redis_server.password, protocol=2) as client:
        yield client


class TestContract(ViewStoreContract):
    name = "redis"
    driver_class = RedisViewStore

    @pytest.fixture
    def options(self, options: Options) -> Options:
        return options

    @pytest.fixture
    def store(self, options: Options) -> RedisViewStore:
        return RedisViewStore.open(options)

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)


def as_operator(operator: redis.Redis, *words: str | bytes) -> Any:  # noqa: ANN401  # as the server answers
    return operator.execute_command(*words)  # type: ignore[no-untyped-call]


def keys_of(store: RedisViewStore, operator: redis.Redis) -> list[bytes]:
    """All keys that the store has in the server."""
    return sorted(as_operator(operator, "KEYS", f"{{{store._options.prefix}:*"))


def test_a_killed_server_has_everything_after_its_restart(store: RedisViewStore, redis_server: RedisServer) -> None:
    """With ``appendfsync always`` no answer is lost. The topology goes on when the server is there again."""
    store.stage("view", 0, 1, {(0, b"key"): b"shown"})
    store.publish("view", 0, 1, 1)
    store.stage("view", 0, 2, {(0, b"key"): b"staged"})
    store.stage_batch("view", Batch(0, "run"), 0, {b"key": b"history"})
    redis_server.kill()
    with pytest.raises(StoreError, match="check that the server runs"):
        store.publish("view", 0, 2, 2)
    redis_server.start()
    assert seen(store, "view", [b"key"]) == Reading(None, {}, {b"key": [b"shown"]}, 1)
    store.publish("view", 0, 2, 2)
    store.publish_batch("view", Batch(0, "run"), 0, 1)
    redis_server.kill()
    redis_server.start()
    assert seen(store, "view", [b"key"]) == Reading(0, {b"key": b"history"}, {b"key": [b"staged"]}, 2)


def test_pieces_that_nobody_has_merged_are_read(store: RedisViewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process was killed after the step that shows. The next one merges, and no answer changes."""
    monkeypatch.setattr(RedisViewStore, "_merge", lambda *_: None)
    for version, writer in ((2, 0), (1, 1), (3, 1)):
        values = {(span_us, key): b"%d" % version for span_us in (-5, 20) for key in (b"a", b"key-%d" % version)}
        store.stage("view", writer, version, values)
        store.publish("view", writer, version, 1)
    store.publish_batch("view", Batch(0, "run"), 0, 1)
    before = seen(store, "view", [b"a", b"key-1", b"key-2"])
    assert before.live == {b"a": [b"3"], b"key-1": [b"1"], b"key-2": [b"2"]}
    assert store.keys("view") == [b"a", b"key-1", b"key-2", b"key-3"]
    monkeypatch.undo()
    store.publish("view", 0, 1, 1)
    assert seen(store, "view", [b"a", b"key-1", b"key-2"]) == before
    assert store.keys("view") == [b"a", b"key-1", b"key-2", b"key-3"]


def test_a_batch_is_shown_with_the_pieces_that_nobody_has_merged(
    store: RedisViewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part was killed after its values were there, and its successor only publishes. Small steps take many calls."""
    with monkeypatch.context() as patch:
        patch.setattr(RedisViewStore, "_merge", lambda *_: None)
        store.stage_batch("view", Batch(0, "run"), 0, {b"a": b"first", b"b": b"first"})
        store.stage_batch("view", Batch(0, "run"), 0, {b"b": b"second", b"c": b"second"})
    monkeypatch.setattr(driver_module, "_STEP", (1, 1))
    store.publish_batch("view", Batch(0, "run"), 0, 1)
    assert seen(store, "view", [b"a", b"b", b"c"]).history == {b"a": b"first", b"b": b"second", b"c": b"second"}


def test_nothing_is_left_in_the_server(store: RedisViewStore, operator: redis.Redis) -> None:
    """Memory is scarce there: merged pieces, covered spans, former batches and dropped views are gone."""
    for until_us, run in ((10, "a"), (20, "b"), (20, "c")):
        store.stage("view", 0, until_us, {(until_us - 10, b"key"): b"x", (until_us, b"key"): b"x"})
        store.publish("view", 0, until_us, 1)
        store.stage_batch("view", Batch(until_us, f"failed-{run}"), 0, {b"key": b"x"})
        store.stage_batch("view", Batch(until_us, run), 0, {b"key": b"x"})
        store.publish_batch("view", Batch(until_us, run), 0, 1)
    names = [key.rpartition(b"}:")[2].split(b":")[0:2] for key in keys_of(store, operator)]
    tables = sorted({name[1] for name in names if name[0] == b"values"})
    assert tables == [b"batch", b"live"]
    assert len(names) == 9  # two tables of two keys; calls, removed, spans, times, visible
    store.drop("view")
    assert keys_of(store, operator) == []


def test_a_piece_whose_writer_died_expires(
    store: RedisViewStore, operator: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a writer that was stopped for longer than that learns it, instead of showing a part of its values."""
    send = RedisViewStore._send

    def slow(*arguments: object) -> object:
        sizes = send(*arguments)  # type: ignore[arg-type]
        pieces = keys_of(store, operator)
        assert len(pieces) == 2
        assert all(0 < as_operator(operator, "TTL", each) <= 600 for each in pieces)
        as_operator(operator, "DEL", *pieces)
        return sizes

    monkeypatch.setattr(RedisViewStore, "_send", slow)
    with pytest.raises(StoreError, match="view view: the server lost values"):
        store.stage("view", 0, 1, {(0, b"key"): b"x"})
    with pytest.raises(StoreError, match="view view: the server lost values"):
        store.stage_batch("view", Batch(0, "run"), 0, {b"key": b"x"})
    store.publish("view", 0, 1, 1)
    assert store.keys("view") == []


def test_scripts_are_loaded_again(store: RedisViewStore, operator: redis.Redis) -> None:
    """An operator has emptied the server's cache of scripts."""
    store.publish("view", 0, 1, 1)
    as_operator(operator, "SCRIPT FLUSH")
    store.publish("view", 0, 2, 2)
    assert store.read("view", []).live_at_us == 2


def test_check_names_server_and_version(options: Options) -> None:
    """`heron plugins check` shows it."""
    assert re.fullmatch(r"Redis \d+\.\d+\.\d+ at 127\.0\.0\.1:\d+", RedisViewStore.open(options).check(5.0))


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}, r"maxmemory-policy allkeys-lru to noeviction"),
        ({"maxmemory": "1gb", "maxmemory-policy": "volatile-ttl"}, r"maxmemory-policy volatile-ttl to noeviction"),
        ({"appendonly": "no"}, r"appendonly to yes, or store\.require_aof to false"),
    ],
)
def test_a_server_that_may_lose_values_is_refused(
    options: Options, redis_server: RedisServer, changes: dict[str, str], wrong: str
) -> None:
    """A value that is missing is a wrong number, which nobody would notice."""
    usual = {"maxmemory": "0", "maxmemory-policy": "noeviction", "appendonly": "yes"}
    try:
        for name, value in changes.items():
            assert redis_server.command("CONFIG", "SET", name, value) == b"+OK"
        with pytest.raises(StoreError, match=rf"Redis at .*: {'.*'}{wrong}"):
            RedisViewStore.open(options).check(5.0)
        with pytest.raises(StoreError, match=wrong):
            RedisViewStore.open(options).stage("view", 0, 1, {(0, b"key"): b"x"})
        if "appendonly" in changes:
            RedisViewStore.open({**options, "require_aof": False}).read("view", [b"key"])
    finally:
        for name, value in usual.items():
            assert redis_server.command("CONFIG", "SET", name, value) == b"+OK"


def test_a_full_server_changes_nothing(store: RedisViewStore, redis_server: RedisServer) -> None:
    """The checkpoint fails with the remedy; what is shown stays, and later calls succeed."""
    store.stage("view", 0, 1, {(0, b"key"): b"former"})
    store.publish("view", 0, 1, 1)
    store.stage("view", 0, 2, {(0, b"key"): b"new"})
    try:
        assert redis_server.command("CONFIG", "SET", "maxmemory", "1") == b"+OK"
        with pytest.raises(StoreError, match=r"view view in Redis .*; raise its maxmemory"):
            store.stage("view", 0, 3, {(0, b"key"): b"newer"})
        assert seen(store, "view", [b"key"]).live == {b"key": [b"former"]}
    finally:
        redis_server.command("CONFIG", "SET", "maxmemory", "0")
    store.publish("view", 0, 3, 3)
    assert seen(store, "view", [b"key"]).live == {b"key": [b"new"]}


def test_a_wrong_password_names_the_option(options: Options, password_file: Path) -> None:
    """And not the password."""
    password_file.write_text("another-password")
    with pytest.raises(StoreError, match=r"Redis at .*, database 0: .*store\.password_file") as caught:
        RedisViewStore.open(options).read("view", [b"key"])
    assert "another-password" not in str(caught.value)


def test_a_password_that_others_can_read_is_refused(options: Options, password_file: Path) -> None:
    """People must learn it before others do."""
    password_file.chmod(0o644)
    with pytest.raises(StoreError, match=r"store\.password_file: other users .*chmod 600"):
        RedisViewStore.open(options).check(5.0)


def test_a_user_needs_the_rights_that_the_error_names(
    options: Options, redis_server: RedisServer, password_file: Path
) -> None:
    """An administrator gives a user no more than these."""
    user = f"u{secrets.token_hex(4)}"
    theirs = {**options, "user": user, "prefix": user}
    password_file.write_text("secret")
    rights = ("on", ">secret", "+@read", "+@write", "+@connection", "+info")
    assert redis_server.command("ACL", "SETUSER", user, *rights, f"~{{{user}:*") == b"+OK"
    with pytest.raises(StoreError, match=r"; give the user .*\+@scripting"):
        RedisViewStore.open(theirs).publish("view", 0, 1, 1)
    assert redis_server.command("ACL", "SETUSER", user, "+@scripting") == b"+OK"
    store = RedisViewStore.open(theirs)
    store.stage("view", 0, 1, {(0, b"key"): b"x"})
    store.publish("view", 0, 1, 1)
    store.drop("view")
    with pytest.raises(StoreError, match="give the user"):
        RedisViewStore.open({**theirs, "prefix": "another"}).publish("view", 0, 1, 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("port", 0),
        ("database", -1),
        ("prefix", "a{b}"),
        ("prefix", ""),
        ("prefix", "a\n"),
        ("timeout_s", 13.0),
        ("host", ""),
        ("password", "secret"),
    ],
)
def test_a_wrong_option_is_named(key: str, value: object) -> None:
    """Before the topology starts. A password in the options would be in topologies."""
    with pytest.raises(ConfigError, match=rf"store\.{key}"):
        RedisViewStore.open({key: value})
