"""The options of a driver: the schema of its section in a profile, and the decoding into a typed value.

The schema is a frozen `msgspec.Struct` (or dataclass), the driver's `options_type`. Its fields are the known keys, in
lower case, with the unit in the name (``_s``, ``_bytes``) where a number has one. ``open`` begins with
`decode_options`. Commands read the same schema to check a profile before anything starts, to show defaults, and to
recognise secrets.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar

import msgspec

from heron.errors import ConfigError, known, nearest
from heron.spi.typed_values import convert_value

__all__ = ["OptionField", "OptionProblem", "Secret", "decode_options", "option_fields", "option_problems"]

T = TypeVar("T")

Secret: TypeAlias = Annotated[str, msgspec.Meta(extra={"secret": True})]
"""The type of a secret option: a password, a key. No message and no listing shows it, and the processes of a run do not
inherit the environment variable that it came from."""

_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]+)`")
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_QUOTED = re.compile(r"`[^`]*`")

_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|\[\.\.\.\]")


@dataclass(frozen=True, slots=True)
class OptionField:
    """One key of a schema. `default` is a JSON value; it has no meaning when the key is `required`."""

    name: str
    hint: object
    required: bool
    default: object = None

    @property
    def secret(self) -> bool:
        """Whether the value is a secret."""
        return _is_secret(self.hint)

    @property
    def schema(self) -> type | None:
        """The schema of the value, when the value is a section."""
        return next((each for each in _alternatives(self.hint) if _is_schema(each)), None)

    @property
    def is_text(self) -> bool:
        """Whether the value can only be text."""
        return {each for each in _alternatives(self.hint) if each is not type(None)} == {str}


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """A problem with one key: its path in the section, and the reason.

    `value` is the wrong value if `has_value` is true. It is kept apart from `text`, because it may be a secret.
    """

    path: tuple[str | int, ...]
    text: str
    value: object = None
    has_value: bool = False


def decode_options(options: Mapping[str, object], to: type[T], place: str) -> T:
    """Return the options as a value of the schema `to`.

    Strict: the only conversion is from int to float. A range is written ``Annotated[int, msgspec.Meta(ge=1)]``. A
    ``ValueError`` in ``__post_init__`` counts as an unacceptable value.

    Args:
        options: JSON values by key.
        to: a `msgspec.Struct` or a dataclass; its fields may have such types too.
        place: the name of the section, which begins every error message (``uploader``).

    Raises:
        ConfigError: when a key is unknown (names the nearest key and lists all), when a key is missing, or when a value
            is not acceptable (names the path of its key, and the value unless it is a `Secret`).
    """
    for problem in option_problems(options, to):
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.path)
        shown = f"; it is {problem.value!r:.80}" if problem.has_value else ""
        msg = f"{place}{path}: {problem.text}{shown}"
        raise ConfigError(msg)
    return convert_value(dict(options), to)


def option_problems(options: Mapping[str, object], to: type) -> tuple[OptionProblem, ...]:
    """Return all problems of the options in the order of the section; empty when they decode.

    The values of `Secret` options are left out.
    """
    found = tuple(_problems(options, to, ()))
    if found:
        return found
    try:
        convert_value(dict(options), to)
    except msgspec.ValidationError as error:  # from __post_init__, since every field was checked above
        text, steps = _split_message(str(error))
        return (OptionProblem(steps, text),)
    return ()


def option_fields(to: type) -> tuple[OptionField, ...]:
    """Return the keys of a schema in its order."""
    hints = typing.get_type_hints(to, include_extras=True)
    return tuple(OptionField(name, hints[name], required, default) for name, required, default in _declared(to))


def _declared(to: type) -> Iterator[tuple[str, bool, object]]:
    """Yield the name of each key, whether it is required, and its default as JSON."""
    if issubclass(to, msgspec.Struct):
        for each in msgspec.structs.fields(to):
            value = each.default if each.default_factory is msgspec.NODEFAULT else each.default_factory()
            yield each.name, each.required, None if each.required else _json(value)
    elif dataclasses.is_dataclass(to):
        for found in dataclasses.fields(to):
            value = found.default if found.default_factory is dataclasses.MISSING else found.default_factory()
            required = value is dataclasses.MISSING
            yield found.name, required, None if required else _json(value)


def _json(value: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(value))


def _problems(options: Mapping[str, object], to: type, path: tuple[str, ...]) -> Iterator[OptionProblem]:
    fields = {each.name: each for each in option_fields(to)}
    for key, value in options.items():
        here = (*path, str(key))
        field = fields.get(key)
        if field is None:
            yield OptionProblem(here, f"unknown key{nearest(str(key), fields)}; known: {known(fields)}")
        elif field.schema is not None and isinstance(value, Mapping):
            yield from _problems(value, field.schema, here)
        else:
            try:
                convert_value(value, typing.cast("type[object]", field.hint))
            except msgspec.ValidationError as error:
                text, steps = _split_message(str(error))
                if field.secret:
                    yield OptionProblem((*here, *steps), f"{text}; its value is not shown")
                else:
                    yield OptionProblem((*here, *steps), text, _value_at(value, steps), has_value=True)
    for name, field in fields.items():
        if field.required and name not in options:
            yield OptionProblem((*path, name), "missing; give it a value")


def _split_message(message: str) -> tuple[str, tuple[str | int, ...]]:
    """Split a message of msgspec into its text and the path of the value."""
    at = _PLACE.search(message)
    text = message[: at.start()] if at else message
    steps: list[str | int] = []
    for step in _STEP.finditer(at["path"] if at else ""):
        if step["key"] is not None:
            steps.append(step["key"])
        elif step["index"] is not None:
            steps.append(int(step["index"]))
    if missing := _MISSING.match(text):
        return "missing; give it a value", (*steps, missing["key"])
    text = _QUOTED.sub(lambda kind: kind[0].replace("array", "list").replace("object", "section"), text)
    return f"{text[:1].lower()}{text[1:]}", tuple(steps)


def _value_at(value: object, steps: Sequence[str | int]) -> object:
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and isinstance(step, int):
            value = value[step]
    return value


def _alternatives(hint: object) -> tuple[object, ...]:
    """The types that a hint allows, without annotations."""
    if typing.get_origin(hint) is Annotated:
        return _alternatives(typing.get_args(hint)[0])
    if isinstance(hint, type) or typing.get_origin(hint) in {list, tuple, dict, set, frozenset, typing.Literal}:
        return (hint,)
    return tuple(found for each in typing.get_args(hint) for found in _alternatives(each)) or (hint,)


def _is_schema(hint: object) -> typing.TypeGuard[type]:
    return isinstance(hint, type) and (issubclass(hint, msgspec.Struct) or dataclasses.is_dataclass(hint))


def _is_secret(hint: object) -> bool:
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Annotated and any(
        isinstance(each, msgspec.Meta) and (each.extra or {}).get("secret") for each in arguments[1:]
    ):
        return True
    return any(_is_secret(each) for each in arguments if not isinstance(each, msgspec.Meta))
