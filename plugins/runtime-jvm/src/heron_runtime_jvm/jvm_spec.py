"""The spec of a component in a JVM: its outputs, and its settings in its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heron.api import Stream
from heron.author_text import short_text
from heron_runtime_jvm.jvm_settings import JVM_KEY, JvmArguments, jvm_settings

__all__ = ["jvm_spec"]


def jvm_spec(
    component: type,
    name: str | None,
    config: Mapping[str, object] | None,
    outputs: Sequence[str | Stream] | None,
    arguments: JvmArguments,
) -> tuple[dict[str, object], tuple[str | Stream, ...]]:
    """Return configuration and additional outputs for `spec` of the base class.

    Raises:
        TopologyError: when an argument has the wrong type or range.
    """
    place = f"component {short_text(name)}" if name is not None else f"component of {component.__qualname__}"
    settings = jvm_settings(component, arguments, place)
    return {**(config or {}), JVM_KEY: settings.as_config()}, (*(arguments.get("outputs") or ()), *(outputs or ()))
