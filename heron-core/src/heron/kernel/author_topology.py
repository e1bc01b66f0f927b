"""Chooses the topology of a loaded file, in the command and in each instance.

Without a name, the choice is the first of these that exists:

1. the topology that the file submits;
2. its only `Topology` class;
3. the topology that its main block submits;
4. its only builder at module level.

A name means a class, a builder, a function without arguments that returns either, or a submitted topology.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

from heron.api.capture import TopologySource, capture_topologies
from heron.api.component_spec import HeronComponentSpec
from heron.api.stream import ICustomGrouping
from heron.api.topology import Topology, TopologyBuilder
from heron.errors import UsageError, known, nearest
from heron.kernel.manifest import PackageManifest
from heron.kernel.user_code import UserCode

__all__ = ["choose_topology", "live_grouping"]


def choose_topology(code: UserCode, name: str | None) -> TopologySource:
    """Return the builder or `Topology` class with this name; without a name, the only topology of the file.

    Raises:
        UsageError: when the file does not have it, or has several topologies and `name` is None; lists the names.
    """
    return _only(code) if name is None else _named(code, name)


def live_grouping(
    code: UserCode, manifest: PackageManifest, component: str, source: str, stream: str
) -> ICustomGrouping:
    """Return the object that the author's file gave to ``Grouping.custom`` for this input.

    Raises:
        UsageError: when the file builds a different topology here than in the command.
    """
    return choose_topology(code, manifest.choice).live_grouping(component, source, stream)


def _only(code: UserCode) -> TopologySource:
    found = _distinct(code.captured) or _classes(code)
    if not found and code.run_main_block():
        found = _distinct(code.captured)
    found = found or _builders(code)
    if len(found) == 1:
        return found[0]
    if not found:
        msg = (
            f"{code.path}: has no topology; define a Topology class, or call build_and_submit() on a TopologyBuilder, "
            "or name a function with FILE:NAME"
        )
        raise UsageError(msg)
    names = _names(code, found)
    msg = f"{code.path}: has {len(found)} topologies, {known(names)}; choose one: {code.path.name}:{min(names)}"
    raise UsageError(msg)


def _named(code: UserCode, name: str) -> TopologySource:
    found = getattr(code.module, name, None)
    if inspect.isfunction(found):
        found = _made(code, name, found)
    if source := _as_source(found):
        return source
    code.run_main_block()
    for each in _distinct(code.captured):
        if name in (each.topology_name, *_names(code, [each])):
            return each
    if source := _as_source(getattr(code.module, name, None)):
        return source
    there = _names(code, [*_distinct(code.captured), *_classes(code), *_builders(code)])
    msg = f"{code.path}: has no topology {name!r}{nearest(name, there)}; there are: {known(there)}"
    raise UsageError(msg)


def _made(code: UserCode, name: str, function: Callable[[], object]) -> TopologySource:
    with capture_topologies() as captured:
        made = function()
    if source := _as_source(made) or (captured[-1] if captured else None):
        return source
    msg = f"{code.path}: {name}() returned {type(made).__name__}; return a TopologyBuilder or a Topology class"
    raise UsageError(msg)


def _as_source(found: object) -> TopologySource | None:
    if isinstance(found, TopologyBuilder):
        return found
    if isinstance(found, type) and issubclass(found, Topology) and found is not Topology:
        return found
    return None


def _classes(code: UserCode) -> list[TopologySource]:
    """Return the `Topology` classes with components that the file defines; an imported class needs a name."""
    return _distinct(
        each
        for each in vars(code.module).values()
        if isinstance(each, type)
        and issubclass(each, Topology)
        and each.__module__ in (code.path.stem, "__main__")
        and any(isinstance(getattr(each, name), HeronComponentSpec) for name in dir(each))
    )


def _builders(code: UserCode) -> list[TopologySource]:
    return _distinct(each for each in vars(code.module).values() if isinstance(each, TopologyBuilder))


def _distinct(found: Iterable[TopologySource]) -> list[TopologySource]:
    return list({id(each): each for each in found}.values())


def _names(code: UserCode, found: Iterable[TopologySource]) -> list[str]:
    """Return the name of each topology in the file, or the topology's own name if the file has none for it."""
    in_file = {id(value): name for name, value in vars(code.module).items()}
    return [in_file.get(id(each), each.topology_name) for each in found]
