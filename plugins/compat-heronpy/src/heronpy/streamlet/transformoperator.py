"""Objects of authors that transform elements and emit the results."""

from __future__ import annotations

from typing import Any

from heron_streamlet import StageContext, Transformer
from heronpy.streamlet.context import Context

__all__ = ["TransformOperator"]


class TransformOperator(Transformer[Any, Any]):
    """Transforms elements: `setup(context)` is called once with a `Context`, then `transform(element)` for each.

    Results are what `transform` emits by `context.emit`.
    """

    _heronpy_context: Context

    def __init_subclass__(cls, **arguments: Any) -> None:  # noqa: ANN401  # as of `type`
        """Give the author's methods the context of heronpy, and collect what they emit."""
        super().__init_subclass__(**arguments)
        setup, transform = cls.__dict__.get("setup"), cls.__dict__.get("transform")
        if setup is not None:

            def setup_with_context(self: TransformOperator, context: StageContext | Context) -> None:
                setup(self, TransformOperator._own(self, context))

            cls.setup = setup_with_context  # type: ignore[method-assign]  # wraps it
        if transform is not None:

            def transform_and_take(self: TransformOperator, element: Any) -> list[Any]:  # noqa: ANN401
                transform(self, element)
                return self._heronpy_context.take()

            cls.transform = transform_and_take  # type: ignore[method-assign,assignment]  # wraps it

    def setup(self, context: StageContext) -> None:
        """Keep the context."""
        self._own(context)

    def _own(self, context: StageContext | Context) -> Context:
        self._heronpy_context = Context(context) if isinstance(context, StageContext) else context
        return self._heronpy_context
