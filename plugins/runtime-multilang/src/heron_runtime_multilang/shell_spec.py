"""The spec of a component that runs in a child: its outputs, and the settings of the child in its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heron.api import Stream
from heron.author_text import short_text
from heron_runtime_multilang.child_settings import CONFIG_KEY, ChildArguments, child_settings

__all__ = ["shell_spec"]


def shell_spec(
    component: type,
    name: str | None,
    config: Mapping[str, object] | None,
    outputs: Sequence[str | Stream] | None,
    child: ChildArguments,
) -> tuple[dict[str, object], tuple[str | Stream, ...]]:
    """Return configuration and additional outputs for `spec` of the base class.

    Raises:
        TopologyError: when an argument has the wrong type or range.
    """
    place = f"component {short_text(name)}" if name is not None else f"component of {component.__qualname__}"
    settings = child_settings(component, child, place)
    return {**(config or {}), CONFIG_KEY: settings.as_config()}, (*(child.get("outputs") or ()), *(outputs or ()))
