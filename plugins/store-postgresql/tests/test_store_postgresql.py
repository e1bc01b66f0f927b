"""The store of views in PostgreSQL: its contract on a real server, its tables, and refusals."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from heron.errors import ConfigError, StoreError
from heron_store_postgresql import PostgresqlViewStore
from heron_testing.contracts.store import ViewStoreContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.postgresql import PostgresqlServer

Options = dict[str, object]


@pytest.fixture
def relay(postgresql: PostgresqlServer) -> Iterator[Relay]:
    """Connects the driver to the server, and can cut the connections."""
    relay = Relay(postgresql.address)
    yield relay
    relay.close()


@pytest.fixture
def password_file(tmp_path: Path, postgresql: PostgresqlServer) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{postgresql.password}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def options(postgresql: PostgresqlServer, relay: Relay, password_file: Path) -> Options:
    host, port = relay.address
    return {
        "host": host,
        "port": port,
        "dbname": "postgres",
        "user": postgresql.user,
        "password_file": str(password_file),
        "schema": "views",
        "timeout_s": 4.0,
    }


class TestContract(ViewStoreContract):
    name = "postgresql"
    driver_class = PostgresqlViewStore

    @pytest.fixture
    def options(self, options: Options) -> Options:
        return options

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)


def execute(server: PostgresqlServer, *statements: str) -> None:
    """As the owner of the database does."""
    host, port = server.address
    with psycopg.connect(
        host=host, port=port, user=server.user, password=server.password, dbname="postgres", autocommit=True
    ) as connection:
        for each in statements:
            connection.execute(each.encode())


def test_the_first_use_creates_the_schema_once_for_all_processes(options: Options) -> None:
    """All tasks of a topology begin together. Two schemas are two stores."""
    fresh = {**options, "schema": f"v{secrets.token_hex(4)}"}
    stores = [PostgresqlViewStore.open(fresh) for _ in range(6)]
    with ThreadPoolExecutor(len(stores)) as threads:
        for done in [threads.submit(each.publish, "view", number, 1, 9 - number) for number, each in enumerate(stores)]:
            done.result()
    assert stores[0].read("view", []).live_at_us == 4
    assert PostgresqlViewStore.open(options).read("view", []).live_at_us is None


def test_a_restarted_server_is_used_again(options: Options, postgresql: PostgresqlServer) -> None:
    """A topology lives for months; the server is updated meanwhile, or dies. What was staged is still there."""
    store = PostgresqlViewStore.open(options)
    store.stage("restarted", 0, 1, {(0, b"key"): b"value"})
    postgresql.kill()
    with pytest.raises(StoreError, match="check that the server runs"):
        store.publish("restarted", 0, 1, 1)
    postgresql.start()
    store.publish("restarted", 0, 1, 1)
    postgresql.kill()
    postgresql.start()
    assert store.read("restarted", [b"key"]).live == {b"key": [b"value"]}
    store.drop("restarted")


def test_check_names_server_and_version(options: Options) -> None:
    """`heron plugins check` shows it; the tables are not created."""
    fresh = {**options, "schema": f"v{secrets.token_hex(4)}"}
    assert re.fullmatch(r"PostgreSQL \d+\.\d+ at 127\.0\.0\.1:\d+", PostgresqlViewStore.open(fresh).check(5.0))


def test_a_wrong_password_names_the_option(options: Options, password_file: Path) -> None:
    """And not the password."""
    password_file.write_text("another-password")
    with pytest.raises(StoreError, match=r"PostgreSQL at .*, database postgres: .*store\.password_file") as caught:
        PostgresqlViewStore.open(options).read("view", [b"key"])
    assert "another-password" not in str(caught.value)


def test_a_password_that_others_can_read_is_refused(options: Options, password_file: Path) -> None:
    """People must learn it before others do."""
    password_file.chmod(0o644)
    with pytest.raises(StoreError, match=r"store\.password_file: other users .*chmod 600"):
        PostgresqlViewStore.open(options).check(5.0)


def test_a_user_without_rights_learns_which(options: Options, postgresql: PostgresqlServer, tmp_path: Path) -> None:
    """An administrator can grant them, or create the schema."""
    user, schema = f"u{secrets.token_hex(4)}", f"v{secrets.token_hex(4)}"
    execute(postgresql, f"create user {user} password 'secret'")
    (tmp_path / "other").write_text("secret")
    (tmp_path / "other").chmod(0o600)
    theirs = {**options, "user": user, "password_file": str(tmp_path / "other"), "schema": schema}
    with pytest.raises(StoreError, match=r"permission denied.*grant the user CREATE on the database, or create the"):
        PostgresqlViewStore.open(theirs).publish("view", 0, 1, 1)
    execute(postgresql, f"create schema {schema} authorization {user}")
    PostgresqlViewStore.open(theirs).publish("view", 0, 1, 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("port", 0),
        ("schema", "a; drop table x"),
        ("schema", "Views"),
        ("sslmode", "sometimes"),
        ("timeout_s", 26.0),
        ("dbname", ""),
        ("password", "secret"),
    ],
)
def test_a_wrong_option_is_named(key: str, value: object) -> None:
    """Before the topology starts. A password in the options would be in topologies."""
    with pytest.raises(ConfigError, match=rf"store\.{key}"):
        PostgresqlViewStore.open({"dbname": "heron", "user": "heron", key: value})
