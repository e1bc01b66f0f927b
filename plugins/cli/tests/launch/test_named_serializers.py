"""The serializers that a topology needs, and those that cannot be combined."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Self

import pytest

from heron.api.definition import ComponentDefinition, ComponentKind, TopologyDefinition
from heron.errors import ConfigError, PluginError
from heron.spi.driver import DriverRef
from heron.spi.serializer import Serializer
from heron_cli.launch.named_drivers import named_serializers


class Textual(Serializer):
    """A serializer of which the tests use only the number."""

    spi_version = 1
    encoding = 200

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Accept no options."""
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """Return empty bytes."""
        return repr(columns).encode()

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """Not used in these tests."""
        return []


class Other(Textual):
    """A serializer with the same number."""


DRIVERS = {"textual": Textual, "other": Other}


def resolve(family: str, name: str, options: Mapping[str, object]) -> DriverRef:
    """Find the serializers of this file."""
    if name not in DRIVERS:
        msg = f"no {family} driver {name!r}"
        raise PluginError(msg)
    return DriverRef(family, name, f"serializers_under_test:{DRIVERS[name].__name__}", dict(options))


def topology(whole: str | None, *components: str | None) -> TopologyDefinition:
    """Return a topology with one spout for each choice of a serializer."""

    def config(name: str | None) -> dict[str, object]:
        return {} if name is None else {"topology.serializer": name}

    return TopologyDefinition(
        "t",
        tuple(
            ComponentDefinition(f"c{number}", ComponentKind.SPOUT, "m:C", 1, (), config=config(name))
            for number, name in enumerate(components)
        ),
        config(whole),
    )


def names(*choices: str | None) -> list[str]:
    """Return the names of the serializers, without that of the core."""
    return [ref.name for ref in named_serializers(topology(*choices), resolve)]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this module importable by the name that the drivers use."""
    monkeypatch.setitem(sys.modules, "serializers_under_test", sys.modules[__name__])


def test_pickle_is_in_the_core_and_needs_no_discovery() -> None:
    """A topology without other serializers looks up no driver."""
    assert names(None, None, "pickle") == []


def test_component_comes_before_topology_and_each_is_named_once() -> None:
    """Every instance gets all serializers, because it may read tuples of each."""
    assert names("textual", None, None, "pickle") == ["textual"]
    assert names("other", "textual", "textual") == ["textual"]


def test_unknown_serializer_names_the_component() -> None:
    """The author can find the line of the topology."""
    with pytest.raises(PluginError, match=r"component 'c1': topology\.serializer: no serializer driver 'textuel'"):
        names(None, None, "textuel")


def test_two_serializers_with_one_encoding_are_refused() -> None:
    """A reader has only the number to choose a serializer."""
    with pytest.raises(ConfigError, match="'other' and 'textual' both write encoding 200"):
        names("textual", None, "other")
