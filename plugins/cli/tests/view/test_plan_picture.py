"""The picture of a packing plan: equal containers once, exact bars, terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.resource_map import Limits
from heron_cli.view.plan_picture import container_pictures

_GIB = 1 << 30
_ONE = Resource(1.0, _GIB, _GIB)
_TEN = Limits(10.0, 10 * _GIB, 10 * _GIB)
_NONE = Limits(None, None, None)


def _container(container_id: int, components: str, kept: Resource = _ONE) -> ContainerPlan:
    instances = tuple(
        InstancePlan(component, container_id * 100 + at, at, _ONE) for at, component in enumerate(components)
    )
    return ContainerPlan(container_id, instances, sum((each.resource for each in instances), kept))


def _shown(plan: PackingPlan, limits: Limits, width: int = 100, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width)
    for picture in container_pictures(plan, limits):
        console.print(picture)
    file.flush()
    file.seek(0)
    return file.read().splitlines()


def test_a_bar_has_a_part_for_each_component_the_engine_and_free_space() -> None:
    """Fifty columns show ten units of each resource, so an instance has five."""
    lines = _shown(PackingPlan("p", (_container(1, "aab"),)), _TEN)
    assert lines[0] == "container 1: 3 instances"
    assert lines[1:3] == [
        "2 x a: 1 cpu, 1.0 GiB memory, 1.0 GiB disk each",
        "1 x b: 1 cpu, 1.0 GiB memory, 1.0 GiB disk",
    ]
    bar = "█" * 10 + "▓" * 5 + "░" * 5 + "·" * 30
    assert lines[3:] == [
        f"cpu     {bar}  3 + 1 kept, of 10",
        f"memory  {bar}  3.0 GiB + 1.0 GiB kept, of 10.0 GiB",
        f"disk    {bar}  3.0 GiB + 1.0 GiB kept, of 10.0 GiB",
    ]


def test_without_limits_a_full_bar_is_the_largest_container() -> None:
    """Without a limit there is no free space."""
    lines = _shown(PackingPlan("p", (_container(1, "aaaa"), _container(2, "a"))), _NONE)
    cpu = [line for line in lines if line.startswith("cpu")]
    assert cpu == [f"cpu     {'█' * 40}{'░' * 10}  4 + 1 kept", f"cpu     {'█' * 10}{'░' * 10}{' ' * 30}  1 + 1 kept"]


def test_containers_that_are_alike_are_drawn_once() -> None:
    """A thousand containers must not give four thousand lines."""
    like_two = [_container(each, "ab") for each in (2, 3, 4, 6)]
    plan = PackingPlan("p", (_container(1, "a"), *like_two[:3], _container(5, "a"), like_two[3]))
    titles = [line for line in _shown(plan, _TEN) if line.startswith("container")]
    assert titles == ["containers 1, 5 (2 alike): 1 instance each", "containers 2-4, 6 (4 alike): 2 instances each"]


@pytest.mark.parametrize("width", [1, 10, 20, 40, 55, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """A bar must not wrap; a bar without room beside its text has a separate line."""
    lines = _shown(PackingPlan("p", (_container(1, "aab"), _container(2, "b" * 9))), _TEN, width)
    assert max(map(len, lines)) <= width
    bars = [line for line in lines if "█" in line]
    assert len(bars) >= 6 or width == 1


def test_an_ascii_terminal_gets_ascii_characters() -> None:
    """All characters of the picture are ASCII."""
    lines = _shown(PackingPlan("p", (_container(1, "ab"),)), _TEN, encoding="ascii")
    assert f"cpu     {'#' * 5}{'=' * 5}{'-' * 5}{'.' * 35}  2 + 1 kept, of 10" in lines


def test_a_container_without_disk_is_drawn() -> None:
    """A packing of a third party may request no disk."""
    nothing = Resource(1.0, _GIB, 0)
    plan = PackingPlan("p", (ContainerPlan(1, (InstancePlan("a", 1, 0, nothing),), nothing),))
    assert any(line.startswith("disk") and line.endswith("0 B + 0 B kept") for line in _shown(plan, _NONE))
