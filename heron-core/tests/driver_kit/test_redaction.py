"""Which names have secrets as values, and what is left of texts with passwords."""

from __future__ import annotations

import pytest

from heron.driver_kit.redaction import hide_url_passwords, names_secret


@pytest.mark.parametrize("name", ["ssl.passphrase", "DB_PWD", "Authorization", "session-cookie", "pwd"])
def test_names_of_secrets_are_found(name: str) -> None:
    """In any spelling."""
    assert names_secret(name)


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "word", "path"])
def test_other_names_are_none(name: str) -> None:
    """A shell keeps the path of its folder in PWD."""
    assert not names_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://crew:hunter2@h:5/db", "postgres://crew:(secret)@h:5/db"),
        ("redis://:p@ss:w@h, amqp://a:b@c", "redis://:(secret)@h, amqp://a:(secret)@c"),
        ("http://h:80/x?mail=a@b", "http://h:80/x?mail=a@b"),
        ("see me@h: 5", "see me@h: 5"),
    ],
)
def test_only_the_password_of_an_address_is_hidden(text: str, shown: str) -> None:
    """Host and user help to find a mistake."""
    assert hide_url_passwords(text) == shown
