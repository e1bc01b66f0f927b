"""Keeps resolved secrets out of what is printed or logged."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["hidden"]

_LEAST = 4  # what is shorter stands in every second word, and could be guessed anyway


def hidden(text: str, secrets: Iterable[str], shown: str = "(secret)") -> str:
    """The text with `shown` in place of every secret of four characters or more, longer ones first."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST:
            for form in {secret, repr(secret)[1:-1]}:
                text = text.replace(form, shown)
    return text
