"""Keeps secrets out of printed, logged and shown text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from heron.author_text import names_secret

__all__ = ["add_command_secrets", "hide_url_passwords", "names_secret", "redact", "redact_for_command"]

_MIN_CHARACTERS = 4  # a shorter text occurs in ordinary words, and could be guessed anyway
_URL_PASSWORD = re.compile(r"(://[^\s/:@]*:)[^\s/]+@")
_command_secrets: set[str] = set()


def hide_url_passwords(text: str, shown: str = "(secret)") -> str:
    """Return the text with `shown` in place of the password of each URL ``scheme://user:password@host``."""
    return _URL_PASSWORD.sub(lambda match: f"{match[1]}{shown}@", text)


def redact(text: str, secrets: Iterable[str], shown: str = "(secret)") -> str:
    """Return the text with `shown` in place of every secret of four characters or more, longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_CHARACTERS:
            for form in {secret, repr(secret)[1:-1]}:
                text = text.replace(form, shown)
    return text


def add_command_secrets(secrets: Iterable[str]) -> None:
    """Let `redact_for_command` remove these secrets too, those of a profile that this process reads. Thread-safe.

    Secrets stay until the process ends: a process may use several profiles at once, each of them several times.
    """
    _command_secrets.update(secrets)


def redact_for_command(text: str) -> str:
    """Return the text as a command may print it. Errors of drivers and servers may quote their options."""
    return redact(text, tuple(_command_secrets))
