"""The author's code in this process: their package, their component, and its methods made fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from heron.api.bolt import BaseBolt
from heron.api.custom_grouping import ICustomGrouping
from heron.api.definition import InputDefinition
from heron.api.spout import BaseSpout
from heron.errors import UsageError
from heron.kernel.author_topology import live_grouping
from heron.kernel.manifest import PackageManifest, read_manifest
from heron.kernel.user_code import UserCode, load_class, load_user_code

__all__ = ["UserPackage", "specialise"]


class UserPackage:
    """The unpacked package; the author's file is loaded at the first need of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._code: UserCode | None = None
        self._manifest: PackageManifest | None = None

    def load(self) -> tuple[UserCode, PackageManifest]:
        """The author's module, loaded once."""
        if self._code is None or self._manifest is None:
            self._manifest = read_manifest(self._folder)
            self._code = load_user_code(self._folder / f"{self._manifest.module}.py", self._manifest.argv)
        return self._code, self._manifest

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
