"""The author's code in this process: the package, the component's initialisation and methods, and its task hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from heron.api.api_constants import TOPOLOGY_AUTO_TASK_HOOKS
from heron.api.bolt import BaseBolt, Bolt
from heron.api.context import ITaskHook
from heron.api.definition import InputDefinition
from heron.api.names import parsed_entry
from heron.api.spout import BaseSpout, Spout
from heron.api.state import HashMapState, StatefulComponent
from heron.api.stream import ICustomGrouping
from heron.api.task_hook import BoltAckInfo, BoltExecuteInfo, BoltFailInfo, SpoutAckInfo, SpoutFailInfo
from heron.api.tuple import Tuple
from heron.errors import UsageError
from heron.instance.user.task_context import TaskContext
from heron.kernel.author_topology import live_grouping
from heron.kernel.manifest import PackageManifest, read_manifest
from heron.kernel.user_code import UserCode, load_class, load_package

__all__ = ["BoltHookCalls", "SpoutHookCalls", "UserPackage", "initialise", "specialise"]


class UserPackage:
    """The unpacked package, or a folder with its `manifest`; the author's file is loaded at its first use."""

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
            UsageError: when the object is not an `ICustomGrouping`.
        """
        code, manifest = self.load()
        grouping = subscription.grouping
        if grouping.entry is not None:
            found: object = load_class(grouping.entry)(**grouping.arguments)
        else:
            found = live_grouping(code, manifest, consumer, subscription.component, subscription.stream)
        if not isinstance(found, ICustomGrouping):
            msg = (
                f"custom grouping of {consumer!r} for {subscription.component!r}: {type(found).__name__} is not "
                "an ICustomGrouping; derive it from ICustomGrouping"
            )
            raise UsageError(msg)
        return found


def initialise(
    component: Spout | Bolt, config: Mapping[str, object], context: TaskContext, *, has_state: bool = False
) -> None:
    """Initialises the component: calls its `initialize`, and prepares its task hooks.

    Unless it `has_state`, it gets an empty one.
    """
    if isinstance(component, StatefulComponent) and not has_state:
        component.init_state(HashMapState())
    component.initialize(config, context)
    for entry in _hook_entries(config.get(TOPOLOGY_AUTO_TASK_HOOKS)):
        context.add_task_hook(load_class(entry)())
    context.initialised = True
    for hook in context.hooks:
        hook.prepare(config, context)


def specialise(component: BaseSpout | BaseBolt, methods: Mapping[str, Callable[..., object] | None]) -> None:
    """Replaces methods of a component by faster ones, by changing its class to a generated subclass.

    A method that the author overrides is not replaced: it calls the base class's method, which calls the collector.
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
    else:
        component.__class__ = own


def _hook_entries(value: object) -> list[str]:
    """The entries of class names, which are in a list or separated by commas.

    Raises:
        TopologyError: when a name does not name a class.
    """
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    stripped = [str(name).strip() for name in names]
    return [parsed_entry(name, TOPOLOGY_AUTO_TASK_HOOKS) for name in stripped if name]


class SpoutHookCalls:
    """Calls the hooks of a spout for the outcomes of its trees; emitters call the hooks for emits themselves."""

    def __init__(self, hooks: Sequence[ITaskHook], task_id: int) -> None:
        self._hooks = hooks
        self._task_id = task_id

    def acked(self, tup_id: object, latency_s: float) -> None:
        """The tree is complete, `latency_s` after its emit."""
        info = SpoutAckInfo(tup_id, self._task_id, latency_s * 1000)
        for hook in self._hooks:
            hook.spout_ack(info)

    def failed(self, tup_id: object, latency_s: float) -> None:
        """The tree failed, `latency_s` after its emit."""
        info = SpoutFailInfo(tup_id, self._task_id, latency_s * 1000)
        for hook in self._hooks:
            hook.spout_fail(info)


class BoltHookCalls:
    """Calls the hooks of a bolt for calls of `process`, acks and fails. Made only if there are hooks."""

    def __init__(self, hooks: Sequence[ITaskHook], task_id: int, clock: Callable[[], float]) -> None:
        self._hooks = hooks
        self._task_id = task_id
        self._clock = clock
        # By identity, so that no tuple is held: an object that is reused gets a new time.
        self._given_s: dict[int, float] = {}

    def execute(self, process: Callable[[Tuple], object], tup: Tuple) -> None:
        """Calls `process`, then the hooks with its duration."""
        start_s = self._given_s[id(tup)] = self._clock()
        process(tup)
        info = BoltExecuteInfo(tup, self._task_id, (self._clock() - start_s) * 1000)
        for hook in self._hooks:
            hook.bolt_execute(info)

    def acked(self, tup: Tuple) -> None:
        """The bolt acked the tuple."""
        info = BoltAckInfo(tup, self._task_id, self._since_given_ms(tup))
        for hook in self._hooks:
            hook.bolt_ack(info)

    def failed(self, tup: Tuple) -> None:
        """The bolt failed the tuple."""
        info = BoltFailInfo(tup, self._task_id, self._since_given_ms(tup))
        for hook in self._hooks:
            hook.bolt_fail(info)

    def _since_given_ms(self, tup: Tuple) -> float:
        now_s = self._clock()
        return (now_s - self._given_s.pop(id(tup), now_s)) * 1000  # a tick was not passed to `process`
