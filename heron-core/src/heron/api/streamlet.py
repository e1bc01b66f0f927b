"""The names of the Streamlet API, refused in one sentence until it comes."""

from __future__ import annotations

from typing import NoReturn

from heron.api.config import NOT_YET
from heron.errors import TopologyError

__all__ = ["Builder", "Runner", "Streamlet"]


class _Refused:
    def __new__(cls, *_: object, **__: object) -> NoReturn:
        msg = f"{cls.__name__}: {NOT_YET}"
        raise TopologyError(msg)


class Streamlet(_Refused):
    """A stream of a Streamlet pipeline; not supported yet."""


class Builder(_Refused):
    """Builds Streamlet pipelines; not supported yet."""


class Runner(_Refused):
    """Runs Streamlet pipelines; not supported yet."""
