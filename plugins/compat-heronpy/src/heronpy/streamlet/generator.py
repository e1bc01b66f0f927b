"""Sources that return one element at a time."""

from __future__ import annotations

from typing import Any

from heron_streamlet import Generator as Base
from heron_streamlet import StageContext
from heronpy.streamlet.context import Context

__all__ = ["Generator"]


class Generator(Base[Any]):
    """A source: `setup(context)` is called once with a `Context`, then `get()` for each element; None is none now."""

    def __init_subclass__(cls, **arguments: Any) -> None:  # noqa: ANN401  # as of `type`
        """Give the author's `setup` the context of heronpy."""
        super().__init_subclass__(**arguments)
        if (setup := cls.__dict__.get("setup")) is not None:

            def setup_with_context(self: Generator, context: StageContext | Context) -> None:
                setup(self, Context(context) if isinstance(context, StageContext) else context)

            cls.setup = setup_with_context  # type: ignore[method-assign,assignment]  # wraps it
