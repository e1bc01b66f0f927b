"""What an instance needs besides the author's class: Storm's own keys, and the component's place in the topology.

This travels in the configuration of the component, under a key of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from heron.api import TopologyContext, TopologyReliabilityMode
from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE
from heron.api.config import setting
from heron.errors import ConfigError
from heron_compat_streamparse.hosting.author import AuthorComponent
from heron_compat_streamparse.hosting.storm_context import storm_context

__all__ = ["COMPONENT_KEY", "HOSTED", "TOPOLOGY_KEY", "HostedComponent", "author_place", "refuse_checkpoints"]

COMPONENT_KEY = "streamparse.component"
TOPOLOGY_KEY = "streamparse.storm_conf"
HOSTED = "_hosted"
"""The attribute of an author's class with the class of Heron that owns its objects; the definition names it."""


def author_place(author: object) -> str:
    """Return where the class of an author's object is, for errors that have no line."""
    cls = type(author)
    codes = [code for each in vars(cls).values() if (code := getattr(each, "__code__", None)) is not None]
    if not codes:
        return f"{cls.__module__}.{cls.__qualname__}"
    first = min(codes, key=lambda code: code.co_firstlineno)
    return f"{first.co_filename}, line {first.co_firstlineno} or after ({cls.__qualname__})"


def refuse_checkpoints(config: Mapping[str, object], place: str) -> None:
    """Refuse effectively once: components of streamparse keep nothing in a checkpoint.

    Raises:
        ConfigError: when the configuration of the topology asks for it.
    """
    if setting(config, TOPOLOGY_RELIABILITY_MODE) == TopologyReliabilityMode.EFFECTIVELY_ONCE:
        msg = (
            f"{place}: {TOPOLOGY_RELIABILITY_MODE} is EFFECTIVELY_ONCE, but components of streamparse keep nothing in "
            "a checkpoint, so tuples could be lost; set ATLEAST_ONCE"
        )
        raise ConfigError(msg)


@dataclass(frozen=True, slots=True)
class HostedComponent:
    """A component as data.

    Attributes:
        storm_conf: keys of Storm that Heron does not have.
        context: the part of the context that is the same in all tasks; see `static_context`.
    """

    storm_conf: dict[str, object]
    context: dict[str, Any]

    def as_config(self) -> dict[str, object]:
        """Return it as JSON."""
        return asdict(self)

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> HostedComponent:
        """Return what the configuration of a component has."""
        return cls(**config[COMPONENT_KEY])

    def prepare(self, author: AuthorComponent, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Give the author's object its configuration and context, and initialise it.

        Raises:
            ConfigError: as `refuse_checkpoints`; a command may set the mode after the topology was loaded.
        """
        refuse_checkpoints(config, f"component {context.get_component_id()!r}")
        own = {key: value for key, value in config.items() if key not in (COMPONENT_KEY, TOPOLOGY_KEY)}
        conf = {**own, **config.get(TOPOLOGY_KEY, {}), **self.storm_conf}
        task_context = storm_context(self.context, context)
        author._attach(conf, task_context)
        author.initialize(conf, task_context)
