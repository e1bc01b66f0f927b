"""Where a simulation finds the author's classes and grouping objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from heron.api.capture import TopologySource
from heron.api.definition import InputDefinition, TopologyDefinition
from heron.api.stream import ICustomGrouping
from heron.errors import UsageError
from heron.kernel.user_code import load_class
from heron.planner.verify import verify

__all__ = ["AuthorCode", "LiveCode", "definition_and_code"]


class AuthorCode(Protocol):
    """The author's classes; a package of an instance provides them too."""

    def component_class(self, entry: str) -> type:
        """The class of a component."""
        ...

    def custom_grouping(self, consumer: str, subscription: InputDefinition) -> ICustomGrouping:
        """The author's grouping object for a subscription."""
        ...


class LiveCode:
    """`AuthorCode` of a builder or Topology class in this process."""

    def __init__(self, source: TopologySource) -> None:
        self._source = source

    def component_class(self, entry: str) -> type:
        """`AuthorCode`."""
        return load_class(entry)

    def custom_grouping(self, consumer: str, subscription: InputDefinition) -> ICustomGrouping:
        """`AuthorCode`.

        Raises:
            UsageError: when the object is not an `ICustomGrouping`.
        """
        grouping = subscription.grouping
        if grouping.entry is None:
            return self._source.live_grouping(consumer, subscription.component, subscription.stream)
        found: object = load_class(grouping.entry)(**grouping.arguments)
        if not isinstance(found, ICustomGrouping):
            msg = (
                f"custom grouping of {consumer!r} for {subscription.component!r}: {type(found).__name__} is not "
                "an ICustomGrouping; derive it from ICustomGrouping"
            )
            raise UsageError(msg)
        return found


def definition_and_code(
    source: TopologyDefinition | TopologySource, code: AuthorCode | None
) -> tuple[TopologyDefinition, AuthorCode]:
    """The verified definition, and the code of its classes.

    Raises:
        TopologyError: when the topology does not verify.
        UsageError: when a definition is given without code.
    """
    if isinstance(source, TopologyDefinition):
        if code is None:
            msg = f"topology {source.name!r}: a definition has no code; give the builder or the Topology class instead"
            raise UsageError(msg)
        verify(source)
        return source, code
    definition = source.definition()
    # The classes are in this process already, so their module may have a name that cannot be imported.
    verify(replace(definition, components=tuple(replace(each, entry="author:Code") for each in definition.components)))
    return definition, code or LiveCode(source)
