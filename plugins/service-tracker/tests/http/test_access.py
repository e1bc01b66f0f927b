"""Who may ask the tracker."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from heron.errors import ConfigError, UsageError
from heron_service_tracker.command import tracker
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.access_token import read_token
from heron_service_tracker.http.address import Address, parse_address

TOKEN = "0123456789abcdef-token"


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("127.0.0.1:8888", Address("127.0.0.1", 8888), True),
        ("127.9.0.1:0", Address("127.9.0.1", 0), True),
        ("localhost:80", Address("localhost", 80), True),
        ("[::1]:8888", Address("::1", 8888), True),
        ("192.0.2.1:8888", Address("192.0.2.1", 8888), False),
        ("[::]:8888", Address("::", 8888), False),
        ("tracker.example:8888", Address("tracker.example", 8888), False),
    ],
)
def test_addresses_know_who_reaches_them(text: str, address: Address, loopback: bool) -> None:
    """An address that other machines reach needs more care."""
    assert parse_address(text) == address
    assert address.loopback is loopback


@pytest.mark.parametrize("text", ["", "8888", "h:", "h:99999", "::1:8888", "h:8888/x", "a b:1", "http://h:1"])
def test_texts_that_are_no_address_are_refused(text: str) -> None:
    """The message shows the form."""
    with pytest.raises(UsageError, match=r"is not HOST:PORT, such as 127\.0\.0\.1:8888"):
        parse_address(text)


@pytest.mark.parametrize("host", ["127.0.0.1:8888", "localhost", "LOCALHOST:1", "[::1]:8888"])
def test_own_names_are_served(host: str) -> None:
    """A person may write the loopback address in any way."""
    assert Access(Address("127.0.0.1", 8888)).serves(host)


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8888", "127.0.0.1.evil.example", "localhost@evil", "a b"]
)
def test_other_names_are_refused_without_a_token(host: str) -> None:
    """A page of another site can bind its name to this address."""
    assert not Access(Address("127.0.0.1", 8888)).serves(host)


def test_a_further_name_is_served() -> None:
    """A proxy passes the name that people use."""
    assert Access(Address("127.0.0.1", 8888), names=("Tracker.example",)).serves("tracker.example:443")


@pytest.mark.parametrize(
    "given", ["", "Bearer", f"Basic {TOKEN}", "Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"]
)
def test_only_the_token_is_admitted(given: str) -> None:
    """The scheme counts as well as the token."""
    access = Access(Address("192.0.2.1", 1), TOKEN)
    assert access.admits(f"Bearer {TOKEN}")
    assert not access.admits(given)


def test_a_token_file_that_others_read_is_refused(tmp_path: Path) -> None:
    """The message has the mode and the remedy, and no token."""
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="its mode is 0640, and must be 0600; `chmod 600") as refused:
        read_token(path, None)
    assert TOKEN not in str(refused.value)
    path.chmod(0o600)
    assert read_token(path, None) == TOKEN


@pytest.mark.parametrize("text", ["", "short", "has blanks in its middle", "ümlaut-ümlaut-ümlaut"])
def test_a_text_that_is_no_token_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty token would admit everybody."""
    monkeypatch.setenv("TRACKER_TOKEN", text)
    with pytest.raises(ConfigError, match="has no token of at least 16 printable ASCII characters"):
        read_token(None, "TRACKER_TOKEN")


def test_a_missing_source_of_the_token_is_named(tmp_path: Path) -> None:
    """A tracker without its token must not start."""
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(tmp_path / "none", None)
    with pytest.raises(ConfigError, match="no variable 'NO_SUCH_TOKEN'"):
        read_token(None, "NO_SUCH_TOKEN")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--address", "0.0.0.0:0"], "other machines reach 0.0.0.0: give --token-file"),
        (["--address", "0.0.0.0:0", "--without-token", "--token-env", "HERON_TEST_TOKEN"], "exclude each other"),
        (["--profile", "locall"], "profile 'locall' does not exist (nearest: 'local')"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens before the options are checked."""
    monkeypatch.setenv("HERON_TEST_TOKEN", TOKEN)
    result = CliRunner().invoke(tracker, words)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
