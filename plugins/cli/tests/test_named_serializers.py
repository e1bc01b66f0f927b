"""Which serializers a topology needs, and when they cannot go together."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Self

import pytest

from heron.api.definition import ComponentDefinition, ComponentKind, TopologyDefinition
from heron.errors import ConfigError, PluginError
from heron.spi.driver import DriverRef
from heron.spi.serializer import Serializer
from heron_cli.launch.prepare import named_serializers


class Textual(Serializer):
    """Is only asked for its number."""

    spi_version = 1
    encoding = 200

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """No options."""
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """Any bytes."""
        return repr(columns).encode()

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        """Never used."""
        return []


class Other(Textual):
    """Another one with the same number."""


DRIVERS = {"textual": Textual, "other": Other}


def resolve(family: str, name: str, options: Mapping[str, object]) -> DriverRef:
    """Finds those of this file."""
    if name not in DRIVERS:
        msg = f"no {family} driver {name!r}"
        raise PluginError(msg)
    return DriverRef(family, name, f"serializers_under_test:{DRIVERS[name].__name__}", dict(options))


def topology(whole: str | None, *components: str | None) -> TopologyDefinition:
    """One spout for each, with its own choice or none."""

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
    """Those that are named, without the core's."""
    return [ref.name for ref in named_serializers(topology(*choices), resolve)]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers are loaded by the name of their module."""
    monkeypatch.setitem(sys.modules, "serializers_under_test", sys.modules[__name__])


def test_pickle_is_in_the_core_and_needs_no_discovery() -> None:
    """The usual topology pays nothing."""
    assert names(None, None, "pickle") == []


def test_component_comes_before_topology_and_each_is_named_once() -> None:
    """Every instance gets all of them, for any of them may be its reader."""
    assert names("textual", None, None, "pickle") == ["textual"]
    assert names("other", "textual", "textual") == ["textual"]


def test_unknown_serializer_names_the_component() -> None:
    """Somebody has to find the line in the topology."""
    with pytest.raises(PluginError, match=r"component 'c1': topology\.serializer: no serializer driver 'textuel'"):
        names(None, None, "textuel")


def test_two_of_one_encoding_are_refused() -> None:
    """A reader goes by the number alone."""
    with pytest.raises(ConfigError, match="'other' and 'textual' both write encoding 200"):
        names("textual", None, "other")
