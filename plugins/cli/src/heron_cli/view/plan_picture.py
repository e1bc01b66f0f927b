"""Draws the containers of a packing plan: a bar for each resource, with a part for each component.

Equal containers are drawn once. A full bar is the limit of a container, or without a limit the largest container.
The resources that are kept for the engine and those that are free have their own patterns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, PackingPlan, Resource
from heron.planner.resource_map import Limits
from heron_cli.view.text import counted, format_bytes

__all__ = ["ContainerPicture", "Legend", "container_pictures", "used_by_instances"]

_NAMES: Final = ("cpu", "memory", "disk")
_STYLES: Final = ("cyan", "green", "yellow", "magenta", "blue", "red")
_LABEL_WIDTH: Final = 8
_BAR_WIDTH: Final = 50
_LEAST_BAR_WIDTH: Final = 12  # a bar that would be shorter gets a separate line


@dataclass(frozen=True, slots=True)
class _Signs:
    """The characters of a bar. Those of adjacent parts differ, for terminals without colours."""

    components: str
    kept: str
    free: str


_BLOCKS: Final = _Signs("█▓", "░", "·")
_ASCII: Final = _Signs("#=", "-", ".")


@dataclass(frozen=True, slots=True)
class ContainerPicture:
    """Renders equal containers with rich.

    `lengths` is the amount of each resource that a full bar shows; it is printed when it is a limit.
    """

    ids: tuple[int, ...]
    container: ContainerPlan
    lengths: Resource
    limits: Limits
    styles: dict[str, str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the title, a line for each component, and a bar for each resource."""
        yield Text(self._title())
        counts = Counter((each.component, each.resource) for each in self.container.instances)
        for (component, resource), count in counts.items():
            each = " each" if count > 1 else ""
            yield Text.assemble(f"{count} x ", (component, self.styles[component]), f": {_formatted(resource)}{each}")
        amounts = [self._amounts(at) for at in range(len(_NAMES))]
        bar_width = options.max_width - _LABEL_WIDTH - 2 - max(map(len, amounts))
        signs = _ASCII if options.ascii_only else _BLOCKS
        for at, (name, text) in enumerate(zip(_NAMES, amounts, strict=True)):
            if bar_width >= _LEAST_BAR_WIDTH:
                bar = self._bar(at, min(bar_width, _BAR_WIDTH), signs)
                yield Text.assemble(f"{name:<{_LABEL_WIDTH}}", bar, f"  {text}")
            else:
                yield Text(f"{name}: {text}")
                yield self._bar(at, min(options.max_width, _BAR_WIDTH), signs)

    def _title(self) -> str:
        instances = counted(len(self.container.instances), "instance")
        if len(self.ids) == 1:
            return f"container {self.ids[0]}: {instances}"
        return f"containers {_ranges(self.ids)} ({len(self.ids)} alike): {instances} each"

    def _amounts(self, at: int) -> str:
        used = used_by_instances(self.container)
        kept = self.container.required - used
        text = f"{_amount(used, at)} + {_amount(kept, at)} kept"
        return f"{text}, of {_amount(self.lengths, at)}" if self.limits.amounts()[at] is not None else text

    def _bar(self, at: int, width: int, signs: _Signs) -> Text:
        length = self.lengths.amounts()[at]
        bar, drawn, total = Text(), 0, 0.0

        def draw(amount: float, sign: str, style: str) -> None:
            nonlocal drawn, total
            total += amount
            end = min(width, round(width * total / length)) if length else 0
            bar.append(sign * (end - drawn), style)
            drawn = max(drawn, end)

        parts: dict[str, float] = {}
        for each in self.container.instances:
            parts[each.component] = parts.get(each.component, 0) + each.resource.amounts()[at]
        for number, (component, amount) in enumerate(parts.items()):
            draw(amount, signs.components[number % 2], self.styles[component])
        draw(max(self.container.required.amounts()[at] - total, 0), signs.kept, "dim")
        if self.limits.amounts()[at] is not None:
            bar.append(signs.free * (width - drawn), "dim")
        bar.pad_right(width - len(bar))
        return bar


class Legend:
    """Renders the meaning of the patterns with rich."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one line."""
        signs = _ASCII if options.ascii_only else _BLOCKS
        yield Text(f"{signs.components} instances  {signs.kept} kept for the engine  {signs.free} free", "dim")


def container_pictures(plan: PackingPlan, limits: Limits) -> list[ContainerPicture]:
    """Return the pictures of a plan; each has the place of its first container."""
    largest = [max(amounts) for amounts in zip(*(each.required.amounts() for each in plan.containers), strict=True)]
    cpu, ram, disk = (
        most if limit is None else max(limit, most) for limit, most in zip(limits.amounts(), largest, strict=True)
    )
    styles = {name: _STYLES[at % len(_STYLES)] for at, name in enumerate(plan.parallelism())}
    alike: dict[object, list[ContainerPlan]] = {}
    for container in plan.containers:
        content = Counter((each.component, each.resource) for each in container.instances)
        alike.setdefault((frozenset(content.items()), container.required), []).append(container)
    return [
        ContainerPicture(
            ids=tuple(each.container_id for each in containers),
            container=containers[0],
            lengths=Resource(cpu, int(ram), int(disk)),
            limits=limits,
            styles=styles,
        )
        for containers in alike.values()
    ]


def used_by_instances(container: ContainerPlan) -> Resource:
    """Return the sum of the instances; the rest of the container is kept for the engine."""
    return sum((each.resource for each in container.instances), NO_RESOURCE)


def _formatted(need: Resource) -> str:
    """``1 cpu, 1.0 GiB memory, 1.0 GiB disk``."""
    return ", ".join(f"{_amount(need, at)} {name}" for at, name in enumerate(_NAMES))


def _amount(amount: Resource, at: int) -> str:
    return f"{amount.cpu:g}" if at == 0 else format_bytes(amount.ram_bytes if at == 1 else amount.disk_bytes)


def _ranges(ids: Sequence[int]) -> str:
    """``1-3, 5``."""
    return ", ".join(f"{low}-{high}" if high > low else f"{low}" for low, high in _runs(ids))


def _runs(ids: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for each in ids:
        if runs and each == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], each)
        else:
            runs.append((each, each))
    return runs
