"""The names of the Streamlet API. They can be imported; any use of them is refused until the API exists."""

from __future__ import annotations

from typing import NoReturn

from heron.api.config import NOT_YET
from heron.errors import TopologyError

__all__ = ["Builder", "RefusedType", "Runner", "Streamlet"]


class RefusedType(type):
    """The metaclass of a class that may be imported and derived from, but not called or asked for an attribute."""

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        """Refuse.

        Raises:
            TopologyError: always; the loader adds the author's file and line.
        """
        cls._refuse("")

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):  # Python itself looks for these, in isinstance or in a class statement
            raise AttributeError(name)
        cls._refuse(f".{name}")

    def _refuse(cls, attribute: str) -> NoReturn:
        msg = f"{cls.__module__}.{cls.__qualname__}{attribute}: {NOT_YET}"
        raise TopologyError(msg)


class Streamlet(metaclass=RefusedType):
    """A stream of a Streamlet pipeline; not supported yet."""


class Builder(metaclass=RefusedType):
    """Builds Streamlet pipelines; not supported yet."""


class Runner(metaclass=RefusedType):
    """Runs Streamlet pipelines; not supported yet."""
