"""Turns a driver's section of a profile into a typed value; every driver's `open` begins with this."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from heron.errors import ConfigError, known, nearest

__all__ = ["decode_options"]

T = TypeVar("T")

_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]+)`")
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]")


def decode_options(options: Mapping[str, object], to: type[T], place: str) -> T:
    """The options as a value of the dataclass `to`, whose fields are the known keys.

    Strict: nothing is converted except an int where a float is asked for. Ranges are given with
    ``Annotated[int, msgspec.Meta(ge=1)]``; a ``ValueError`` in ``__post_init__`` counts as an unacceptable value.

    Args:
        options: JSON values by key.
        to: a dataclass; its fields may be dataclasses in turn.
        place: where the options stand, the first part of every error (``uploader``).

    Raises:
        ConfigError: when a key is unknown (names the nearest one and lists all) or missing, or a value is not
            acceptable (names the path of its key and the value).
    """
    _refuse_unknown(options, to, place)
    try:
        return msgspec.convert(dict(options), to, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(_translated(str(error), options, place)) from None


def _refuse_unknown(options: Mapping[str, object], to: type, place: str) -> None:
    hints = typing.get_type_hints(to)
    keys = [each.name for each in dataclasses.fields(to)]
    for key, value in options.items():
        if key not in keys:
            msg = f"{place}.{key}: unknown key{nearest(str(key), keys)}; known: {known(keys)}"
            raise ConfigError(msg)
        if dataclasses.is_dataclass(hints[key]) and isinstance(value, Mapping):
            _refuse_unknown(value, typing.cast("type", hints[key]), f"{place}.{key}")


def _translated(message: str, options: Mapping[str, object], place: str) -> str:
    """msgspec's message with our place, path and value: ``uploader.root: expected `str`, got `int`; it is 3``."""
    at = _PLACE.search(message)
    path = at["path"] if at else ""
    text = message[: at.start()] if at else message
    if missing := _MISSING.match(text):
        return f"{place}{path}.{missing['key']}: missing; give it a value"
    value = _value_at(path, options)
    return f"{place}{path}: {text[:1].lower()}{text[1:]}; it is {value!r:.80}"


def _value_at(path: str, options: Mapping[str, object]) -> object:
    value: object = options
    for step in _STEP.finditer(path):
        if isinstance(value, Mapping) and step["key"] is not None:
            value = value.get(step["key"])
        elif isinstance(value, list | tuple) and step["index"] is not None:
            value = value[int(step["index"])]
    return value
