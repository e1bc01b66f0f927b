"""The author's code in this process: their package, their component, and its methods made fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from heron.api.api_constants import TOPOLOGY_AUTO_TASK_HOOKS
from heron.api.bolt import BaseBolt, Bolt
from heron.api.definition import InputDefinition
from heron.api.names import parsed_entry
from heron.api.spout import BaseSpout, Spout
from heron.api.state import HashMapState, StatefulComponent
from heron.api.stream import ICustomGrouping
from heron.errors import UsageError
from heron.instance.task_context import TaskContext
from heron.kernel.author_topology import live_grouping
from heron.kernel.manifest import PackageManifest, read_manifest
from heron.kernel.user_code import UserCode, load_class, load_package

__all__ = ["UserPackage", "initialise", "specialise"]


class UserPackage:
    """The unpacked package, or a folder with its `manifest`; the author's file is loaded at the first need of it."""

    def __init__(self, folder: Path, manifest: PackageManifest | None = None) -> None:
        self._folder = folder
        self._code: UserCode | None = None
        self._manifest = manifest

    def load(self) -> tuple[UserCode, PackageManifest]:
        """The author's module, loaded once."""
        manifest = self._manifest = self._manifest or read_manifest(self._folder)
        if self._code is None:
            self._code = load_package(self._folder, manifest)
        return self._code, manifest

    def component_class(self, entry: str) -> type:
        """The class of a component."""
        self.load()
        return load_class(entry)

    def custom_grouping(self, consumer: str, subscription: InputDefinition) -> ICustomGrouping:
        """The author's grouping object for a subscription: made from its class, or taken from the loaded file.

        Raises:
            UsageError: when what is found is no `ICustomGrouping`.
        """
        code, manifest = self.load()
        grouping = subscription.grouping
        if grouping.entry is not None:
            found: object = load_class(grouping.entry)(**grouping.arguments)
        else:
            found = live_grouping(code, manifest, consumer, subscription.component, subscription.stream)
        if not isinstance(found, ICustomGrouping):
            msg = (
                f"custom grouping of {consumer!r} for {subscription.component!r}: {type(found).__name__} is no "
                "ICustomGrouping; derive it from ICustomGrouping"
            )
            raise UsageError(msg)
        return found


def initialise(component: Spout | Bolt, config: Mapping[str, object], context: TaskContext) -> None:
    """Calls the author's `initialize` and what belongs to it: an empty state before, the task hooks after."""
    if isinstance(component, StatefulComponent):
        component.init_state(HashMapState())
    component.initialize(config, context)
    for entry in _hook_entries(config.get(TOPOLOGY_AUTO_TASK_HOOKS)):
        context.add_task_hook(load_class(entry)())
    context.initialised = True
    for hook in context.hooks:
        hook.prepare(config, context)


def specialise(component: BaseSpout | BaseBolt, methods: Mapping[str, Callable[..., object] | None]) -> None:
    """Gives a component quicker methods, by making its class a subclass that has them.

    A method that the author overrides is left alone: theirs calls the base's, which calls the collector.
    """
    base = BaseSpout if isinstance(component, BaseSpout) else BaseBolt
    own: type = getattr(component, "_author_class", type(component))
    quicker = {
        name: staticmethod(method)
        for name, method in methods.items()
        if method is not None and getattr(own, name) is getattr(base, name)
    }
    if quicker:
        namespace: dict[str, object] = {
            "__slots__": (),
            "__module__": own.__module__,
            "__qualname__": own.__qualname__,
            "_author_class": own,
        }
        namespace.update(quicker)
        component.__class__ = type(own.__name__, (own,), namespace)


def _hook_entries(value: object) -> list[str]:
    """Return the entries of class names, which are in a list or separated by commas.

    Raises:
        TopologyError: when a name does not name a class.
    """
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    stripped = [str(name).strip() for name in names]
    return [parsed_entry(name, TOPOLOGY_AUTO_TASK_HOOKS) for name in stripped if name]
