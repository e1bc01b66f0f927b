"""The columns of the matrix: arguments that Python allows and no author means, as expressions of the author's file."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["ARGUMENTS", "CLASSES"]

ARGUMENTS: Mapping[str, str] = {
    "None": "None",
    "object": "object()",
    "True": "True",
    "NumPy integer": "numpy.int64(1)",
    "NaN": "float('nan')",
    "huge": "10**5_000",
    "surrogate": r"'a\ud800'",
    "subclass": "Text('text')",
    "contains itself": "inside_itself()",
    "generator": "(number for number in (1, 2))",
    "lambda": "lambda *arguments: None",
    "proxy": "Proxy('text')",
    "`__repr__` raises": "RaisingRepr()",
    "`__eq__` raises": "RaisingEq()",
    "`__hash__` raises": "RaisingHash()",
}
"""The expression of each argument, by its name."""

CLASSES = '''
class HostileError(Exception):
    """What the methods of the arguments raise."""

    def __str__(self):
        raise RuntimeError("the text of an error")


class Failure(Exception):
    """An exception of the author with attributes and a text that may raise."""


class Text(str):
    """A subclass that compares as its base."""


class Proxy:
    """An object that passes for another one."""

    def __init__(self, value):
        object.__setattr__(self, "_value", value)

    @property
    def __class__(self):
        return type(object.__getattribute__(self, "_value"))

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "_value"), name)


class RaisingRepr:
    def __repr__(self):
        raise HostileError


class RaisingEq:
    __hash__ = object.__hash__

    def __eq__(self, other):
        raise HostileError


class RaisingHash:
    def __hash__(self):
        raise HostileError


def inside_itself():
    value = []
    value.append(value)
    return value


def hashable(value):
    try:
        hash(value)
    except Exception:
        return False
    return True


def collector(context):
    return context.threadsafe_collector()


def same(element):
    return element


def half(element):
    return element // 2


def value_of(pair):
    return pair[1]


def second(before, after):
    return after


class Answering(IMetric):
    """A metric that answers with an argument."""

    def __init__(self, value):
        self.value = value

    def get_value_and_reset(self):
        return self.value
'''
"""The classes and functions of these expressions, as text of the author's file."""
