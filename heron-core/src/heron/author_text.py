"""Texts of the author's values and exceptions for error messages: short, whatever their classes do.

No method of a value's own class runs, because a `__repr__` may raise, recurse, take minutes or make megabytes. The text
of an exception is its author's, so `__str__` is called, and may raise.

Error texts reach logs and pages. So a value whose name names a secret is hidden, and a tuple is shown without its
values. Whether the values of a record are shown is decided in `heron.instance.user.user_errors`.
"""

from __future__ import annotations

import datetime
import decimal
import re
import sys
import traceback
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, cast

__all__ = [
    "HIDDEN",
    "Described",
    "class_name",
    "error_text",
    "named_error",
    "names_secret",
    "number_or_class",
    "short_text",
    "traceback_text",
    "without_middle",
]

HIDDEN = "(hidden)"

SHORT = 80
_LONGEST_ERROR = 2_000  # characters; a message may hold a whole record
_LONGEST_TRACE = 20_000
_ENTRIES = 12
_DEEPEST = 4
_SECRET_NAME = re.compile(
    r"secret|password|passwd|passphrase|pwd|token|credential|private|api.?key|access.?key|authorization|cookie",
    re.IGNORECASE,
)
_WORKING_FOLDERS = frozenset({"PWD", "OLDPWD"})  # variables of every shell
_MOST_BITS = 1_024  # Python refuses to write far longer integers, and long ones take long
_Cut = Callable[[object, slice], object]
_TEXTS: tuple[tuple[type, _Cut], ...] = (
    (str, cast("_Cut", str.__getitem__)),
    (bytes, cast("_Cut", bytes.__getitem__)),
    (bytearray, cast("_Cut", bytearray.__getitem__)),
)
_NUMBERS: tuple[type, ...] = (int, float, complex)
_SIMPLE = (
    *(datetime.date, datetime.timedelta, decimal.Decimal, uuid.UUID),
    *(type(None), bool, type(Ellipsis), type(NotImplemented), range, types.FunctionType, types.BuiltinFunctionType),
)
_MORE = {
    "fractions": ("Fraction",),
    "ipaddress": ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"),
    "pathlib": ("PosixPath", "PurePosixPath", "PureWindowsPath"),
}
_CONTAINERS: tuple[tuple[type, str, str], ...] = (
    (list, "[", "]"),
    (tuple, "(", ")"),
    (set, "{", "}"),
    (frozenset, "frozenset({", "})"),
    (deque, "deque([", "])"),
)


class Described(str):
    """A text of the engine about records, without their values."""

    __slots__ = ()


def names_secret(name: str) -> bool:
    """Whether a key, a field or a variable of this name probably has a secret as its value."""
    return name not in _WORKING_FOLDERS and bool(_SECRET_NAME.search(name))


def short_text(value: object, most: int = SHORT) -> str:
    """Like `repr`, of at most `most` characters, in bounded time; an object is shown by its class and attributes."""
    text = ""
    try:
        for piece in _pieces(value, 0, most):
            text += piece
            if len(text) > most:
                break
    except Exception:  # another thread may change it meanwhile
        return f"<{class_name(value)}, which cannot be shown>"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def number_or_class(value: object) -> str:
    """A number; anything else by its class, because it may be a value of a record that was passed by mistake."""
    return short_text(value) if type(value) in _NUMBERS else f"a {class_name(value)}"


def error_text(error: BaseException) -> str:
    """Like `str`; says so if the exception's own `__str__` raises."""
    try:
        text = str(error)
    except BaseException as failure:  # `__str__` may do anything, also exit
        return f"<no message: its __str__ raised {class_name(failure)}>"
    return text if len(text) <= _LONGEST_ERROR else f"{text[: _LONGEST_ERROR - 1]}…"


def named_error(error: BaseException) -> str:
    """The class and the text of an exception."""
    return f"{class_name(error)}: {error_text(error)}"


def traceback_text(error: BaseException, most: int = _LONGEST_TRACE) -> str:
    """The traceback as Python prints it; the middle of one of more than `most` characters is left out."""
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException as failure:  # it reads attributes of the exception, which may be properties
        text = f"<no traceback: formatting it raised {class_name(failure)}>\n"
    return without_middle(text, most)


def without_middle(text: str, most: int = _LONGEST_TRACE) -> str:
    """The text; the middle of one of more than `most` characters is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters …\n{text[-half:]}"


def _loaded() -> Iterator[object]:
    """More simple types of the standard library, if the author has imported their modules."""
    for module, names in _MORE.items():
        if (loaded := sys.modules.get(module)) is not None:
            yield from (vars(loaded).get(each) for each in names)


def class_name(value: object) -> str:
    """The name of the class of a value, without help of its metaclass."""
    return cast("str", type.__dict__["__name__"].__get__(type(value)))


def _pieces(value: object, depth: int, most: int) -> Iterator[str]:
    kind = type(value)
    if any(kind is each for each in _SIMPLE) or (kind is datetime.datetime and _has_known_zone(value)):
        yield repr(value)
    elif any(issubclass(kind, base) for base, _ in _TEXTS):
        yield _quoted(value, most)
    elif any(issubclass(kind, each) for each in _NUMBERS):
        yield _number(value)
    elif depth >= _DEEPEST:
        yield "…"
    elif issubclass(kind, dict):
        yield "{"
        mapping = cast("dict[object, object]", value)
        for number, (key, held) in enumerate(islice(dict.items(mapping), _ENTRIES)):
            yield ", " if number else ""
            yield from _pieces(key, depth + 1, most)
            yield ": "
            yield from _named(key, held, depth, most)
        yield _more(dict.__len__(mapping), "}")
    elif (found := next((each for each in _CONTAINERS if issubclass(kind, each[0])), None)) is not None:
        yield from _sequence(value, found, depth, most)
    elif any(kind is each for each in _loaded()):
        yield repr(value)
    else:
        yield from _object(value, depth, most)


def _named(name: object, held: object, depth: int, most: int) -> Iterator[str]:
    if type(name) is str and names_secret(name):
        yield HIDDEN
    else:
        yield from _pieces(held, depth + 1, most)


def _sequence(value: object, found: tuple[type, str, str], depth: int, most: int) -> Iterator[str]:
    base, opens, closes = found
    length = cast("Callable[[object], int]", base.__len__)(value)  # type: ignore[attr-defined]  # a container
    entries = cast("Callable[[object], Iterable[object]]", base.__iter__)(value)  # type: ignore[attr-defined]
    yield opens
    for number, held in enumerate(islice(entries, _ENTRIES)):
        yield ", " if number else ""
        yield from _pieces(held, depth + 1, most)
    yield _more(length, f",{closes}" if base is tuple and length == 1 else closes)


def _more(length: int, closes: str) -> str:
    return closes if length <= _ENTRIES else f", … {length - _ENTRIES:,} more{closes}"


def _quoted(value: object, most: int) -> str:
    cut = next(cut for base, cut in _TEXTS if issubclass(type(value), base))
    return repr(cut(value, slice(0, most)))


def _number(value: object) -> str:
    base = next(each for each in _NUMBERS if issubclass(type(value), each))
    if base is int and (bits := int.bit_length(cast("int", value))) > _MOST_BITS:
        return f"<int of {bits:,} bits>"
    return cast("Callable[[object], str]", base.__repr__)(value)


def _has_known_zone(value: object) -> bool:
    zone = cast("datetime.datetime", value).tzinfo
    return zone is None or type(zone) is datetime.timezone


def _object(value: object, depth: int, most: int) -> Iterator[str]:
    """An object that is not a plain value: an array by its shape, any other by its class and attributes."""
    kind, numpy = type(value), sys.modules.get("numpy")
    if issubclass(kind, type):
        yield f"<class '{type.__dict__['__name__'].__get__(value)}'>"
    elif numpy is not None and issubclass(kind, numpy.ndarray):
        yield f"<array of {numpy.ndarray.dtype.__get__(value)}, shape {numpy.ndarray.shape.__get__(value)}>"
    elif numpy is not None and issubclass(kind, numpy.generic):
        yield repr(numpy.generic.item(value))
    elif issubclass(kind, BaseException):
        yield class_name(value)
        yield from _pieces(BaseException.__dict__["args"].__get__(value), depth, most)
    else:
        yield f"{class_name(value)}("
        for number, (name, held) in enumerate(_attributes(value)):
            yield f"{', ' if number else ''}{name}="
            yield from _named(name, held, depth, most)
        yield ")"


def _attributes(value: object) -> Iterable[tuple[str, object]]:
    """The attributes of an object that has a dict, and what a tuple of the engine shows.

    What a class keeps to itself is left out: names that begin with an underscore, and fields of a dataclass with
    `repr=False`.
    """
    bases = [type.__getattribute__(base, "__dict__") for base in type.__getattribute__(type(value), "__mro__")]
    names = next((found["_shown"] for found in bases if found.get("_shown")), None)
    if type(names) is tuple:
        return [(str(name), object.__getattribute__(value, str(name))) for name in names]
    try:
        held: object = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return ()
    if type(held) is not dict:
        return ()
    fields: dict[str, Any] = next(
        (found["__dataclass_fields__"] for found in bases if "__dataclass_fields__" in found), {}
    )
    hidden = {name for name, each in fields.items() if not each.repr}
    shown = ((str(name), each) for name, each in dict.items(held) if str(name)[:1] != "_" and name not in hidden)
    return list(islice(shown, _ENTRIES))
