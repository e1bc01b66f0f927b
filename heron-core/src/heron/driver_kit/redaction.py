"""Keeps secrets out of printed, logged and shown text."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["names_secret", "redact", "redact_for_command", "set_command_secrets"]

_MIN_CHARACTERS = 4  # a shorter text occurs in ordinary words, and could be guessed anyway
_NAME = re.compile(r"secret|password|passwd|token|credential|private|api.?key|access.?key", re.IGNORECASE)
_command_secrets: list[str] = []


def names_secret(name: str) -> bool:
    """Return whether a key, a field or a variable of this name probably has a secret as its value."""
    return bool(_NAME.search(name))


def redact(text: str, secrets: Iterable[str], shown: str = "(secret)") -> str:
    """Return the text with `shown` in place of every secret of four characters or more, longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_CHARACTERS:
            for form in {secret, repr(secret)[1:-1]}:
                text = text.replace(form, shown)
    return text


def set_command_secrets(secrets: Iterable[str]) -> None:
    """Set the secrets that `redact_for_command` removes from now on: those of the profile of this command."""
    _command_secrets[:] = secrets


def redact_for_command(text: str) -> str:
    """Return the text as a command may print it. Errors of drivers and servers may quote their options."""
    return redact(text, _command_secrets)
