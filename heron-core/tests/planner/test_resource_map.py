"""Amounts in configuration, and the resource keys of a topology."""

from __future__ import annotations

import pytest

from heron.api.definition import ComponentDefinition, ComponentKind, TopologyDefinition
from heron.errors import ConfigError
from heron.planner.amounts import parse_bytes, parse_cores, parse_count, parse_percent
from heron.planner.resource_map import Limits, read_resource_map


def _topology(config: dict[str, object]) -> TopologyDefinition:
    return TopologyDefinition(
        "t", tuple(ComponentDefinition(name, ComponentKind.SPOUT, "m:C", 1) for name in ("words", "count")), config
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1073741824, 1 << 30),
        ("1073741824", 1 << 30),
        ("512MB", 512 << 20),
        ("1.5 GiB", 3 << 29),
        ("2k", 2048),
        ("1T", 1 << 40),
        (2048.0, 2048),
        ("9007199254740993", 2**53 + 1),
    ],
)
def test_reads_bytes(value: object, expected: int) -> None:
    """A unit is optional, and whole numbers are exact."""
    assert parse_bytes(value, "here") == expected


@pytest.mark.parametrize(
    "value", [0, -1, "0", "-5", "", "GB", "1 parsec", "1e9", True, None, [], float("nan"), float("inf"), "9" * 25, "٣"]
)
def test_refuses_an_invalid_number_of_bytes(value: object) -> None:
    """The message begins with the place of the value."""
    with pytest.raises(ConfigError, match=r"^here: "):
        parse_bytes(value, "here")


@pytest.mark.parametrize(("value", "expected"), [(1, 1.0), (0.5, 0.5), ("2.5", 2.5)])
def test_reads_cores(value: object, expected: float) -> None:
    """Fractions of a core are valid."""
    assert parse_cores(value, "here") == expected


@pytest.mark.parametrize("value", [0, -1, "two", "", True, None, float("nan"), float("inf"), 10**400, "1k"])
def test_refuses_an_invalid_number_of_cores(value: object) -> None:
    """The minimum is above zero."""
    with pytest.raises(ConfigError, match=r"^here: "):
        parse_cores(value, "here")


@pytest.mark.parametrize("value", [0, -1, "0", "x", True, 1.0, None, "1.5", "9" * 5000])
def test_refuses_an_invalid_count(value: object) -> None:
    """A topology needs at least one container and one instance."""
    with pytest.raises(ConfigError, match=r"^here: "):
        parse_count(value, "here")


@pytest.mark.parametrize(("value", "expected"), [(0, 0.0), (12.5, 12.5), ("100", 100.0)])
def test_reads_percentages(value: object, expected: float) -> None:
    """0 and 100 are valid."""
    assert parse_percent(value, "here") == expected


@pytest.mark.parametrize("value", [-1, 100.5, "10%", "ten", "", True, None, float("nan"), 10**400])
def test_refuses_an_invalid_percentage(value: object) -> None:
    """A value above 100, or with a percent sign, is an error."""
    with pytest.raises(ConfigError, match=r"^here: "):
        parse_percent(value, "here")


def test_reads_every_key() -> None:
    """The values have the forms of heronpy and of plain JSON."""
    wanted = read_resource_map(
        _topology(
            {
                "topology.stmgrs": "3",
                "topology.component.cpumap": "words:0.5, count:2",
                "topology.component.rammap": {"words": "512MB"},
                "topology.component.diskmap": "",
                "topology.container.ram": "8GB",
                "topology.container.max.cpu.hint": 16,
                "topology.container.ram.padding": 1024,
                "topology.stmgr.ram": "64MB",
                "topology.container.padding.percentage": "5",
                "topology.container.max.instances": 7,
            }
        )
    )
    assert wanted.containers == 3
    assert wanted.cpu == {"words": 0.5, "count": 2.0}
    assert wanted.ram_bytes == {"words": 512 << 20}
    assert wanted.disk_bytes == {}
    assert wanted.container == Limits(None, 8 << 30, None)
    assert wanted.hint == Limits(16.0, None, None)
    assert wanted.padding == Limits(None, 1024, None)
    assert wanted.limits() == Limits(16.0, 8 << 30, None)
    assert (wanted.padding_percentage, wanted.max_instances) == (5.0, 7)
    assert (wanted.stmgr_ram_bytes, wanted.metricsmgr_ram_bytes) == (64 << 20, None)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("words", "'words' is not of the form 'component:amount'"),
        ("words:1MB,,", "'' is not of the form"),
        ("wrods:1MB", r"no component 'wrods' \(nearest: 'words'\); known: 'count', 'words'"),
        ("words:1MB,words:2MB", "component 'words' is named twice"),
        ("words:x", "component 'words': 'x' is not an amount"),
        (7, "7 is neither a string nor an object"),
    ],
)
def test_refuses_an_invalid_component_map(value: object, message: str) -> None:
    """Each message begins with the key."""
    with pytest.raises(ConfigError, match=rf"^topology\.component\.rammap: .*{message}"):
        read_resource_map(_topology({"topology.component.rammap": value}))
