"""Settings in a file of Java's properties, which is how they reach a JVM without a command line that all may read."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["encode_properties"]

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def encode_properties(settings: Mapping[str, str]) -> bytes:
    """One line each, whatever characters it has."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items()).encode("ascii")


def _escaped(text: str) -> str:
    return "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character in " =:#!":
        return f"\\{character}"
    if " " < character < "\x7f":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
