"""Keeps resolved secrets out of what is printed or logged."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["hidden", "hide_in_command", "spoken"]

_LEAST = 4  # what is shorter stands in every second word, and could be guessed anyway
_of_command: list[str] = []


def hidden(text: str, secrets: Iterable[str], shown: str = "(secret)") -> str:
    """The text with `shown` in place of every secret of four characters or more, longer ones first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST:
            for form in {secret, repr(secret)[1:-1]}:
                text = text.replace(form, shown)
    return text


def hide_in_command(secrets: Iterable[str]) -> None:
    """From now on `spoken` hides these texts: those of the profile that this command uses."""
    _of_command[:] = secrets


def spoken(text: str) -> str:
    """The text as a command may print it: errors of drivers and their servers contain what they were opened with."""
    return hidden(text, _of_command)
