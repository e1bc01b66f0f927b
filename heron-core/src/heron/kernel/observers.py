"""The observers of lifecycle events, collected by pluggy. Imported only for an observer.

pluggy stops at the first implementation that raises. Here each implementation is called separately, so one observer
cannot hide an event from the others. Observers need not import pluggy: the name ``heron_…`` makes a method a hook.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pluggy

from heron.driver_kit.loading import load_object
from heron.errors import HeronError, PluginError, known, nearest
from heron.kernel.observer_threads import check_facts
from heron.spi.hooks import HOOK_NAMES, HookSpecs

if TYPE_CHECKING:
    from pluggy import HookimplOpts, HookspecOpts

__all__ = ["Observers", "Reaction"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reaction:
    """One observer's implementation of one hook, bound to the facts that it takes."""

    observer: str
    hook: str
    call: Callable[[], object]


class Observers:
    """A set of observers. `add` refuses an invalid observer."""

    def __init__(self) -> None:
        self._manager = _Manager("heron")
        self._manager.add_hookspecs(HookSpecs)

    @classmethod
    def load(cls, entries: Iterable[str]) -> Observers:
        """The observers at these entries (``module:object``). If an entry does not load, it is logged and omitted."""
        observers = cls()
        for entry in entries:
            try:
                observers.add(entry, load_object(entry, "observer"))
            except HeronError as error:
                _log.error("observer left out: %s", error)
        return observers

    def add(self, name: str, observer: object) -> None:
        """Adds an observer.

        Raises:
            PluginError: when its class cannot be instantiated, a method ``heron_…`` is not a hook, or a method takes a
                fact that the hook does not have.
        """
        if isinstance(observer, type):
            try:
                observer = observer()
            except (Exception, SystemExit) as error:
                msg = f"observer {name!r} cannot be constructed: {type(error).__name__}: {error}"
                raise PluginError(msg) from error
        try:
            self._manager.register(observer, name)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            msg = f"observer {name!r}: {_reason(error, observer)}"
            raise PluginError(msg) from error

    def names(self) -> tuple[str, ...]:
        """The entries of the observers, in the order of addition."""
        return tuple(name for name, _ in self._manager.list_name_plugin())

    def followed(self) -> tuple[str, ...]:
        """The hooks that at least one observer implements, sorted."""
        return tuple(sorted(name for name in HOOK_NAMES if getattr(self._manager.hook, name).get_hookimpls()))

    def reactions(self, hook: str, facts: dict[str, object]) -> tuple[Reaction, ...]:
        """The calls for an event, in the order in which the observers were added."""
        check_facts(hook, facts)
        caller: pluggy.HookCaller = getattr(self._manager.hook, hook)
        return tuple(_reaction(each, hook, facts) for each in caller.get_hookimpls())

    def notify(self, hook: str, **facts: object) -> None:
        """Calls every observer of the event in this thread; logs an exception and continues with the next observer."""
        for reaction in self.reactions(hook, facts):
            try:
                reaction.call()
            except (Exception, SystemExit) as error:  # an observer must not end the process either
                what = f"{type(error).__name__}: {error}"
                _log.error("observer %s failed in %s: %s", reaction.observer, hook, what)
                _log.info("where observer %s failed", reaction.observer, exc_info=True)  # for a log, not for a terminal


class _Manager(pluggy.PluginManager):
    """A plugin manager that finds specifications and implementations by name instead of by markers."""

    def parse_hookspec_opts(self, _module_or_class: object, name: str) -> HookspecOpts | None:
        if name not in HOOK_NAMES:
            return None
        return {"firstresult": False, "historic": False, "warn_on_impl": None, "warn_on_impl_args": None}

    def parse_hookimpl_opts(self, plugin: object, name: str) -> HookimplOpts | None:
        if not name.startswith("heron_") or not inspect.isroutine(getattr(plugin, name, None)):
            return None
        return {
            "wrapper": False,
            "hookwrapper": False,
            "optionalhook": False,
            "tryfirst": False,
            "trylast": False,
            "specname": None,
        }


def _reaction(implementation: pluggy.HookImpl, hook: str, facts: dict[str, object]) -> Reaction:
    taken = {name: facts[name] for name in implementation.argnames}
    return Reaction(implementation.plugin_name, hook, lambda: implementation.function(**taken))


def _reason(error: pluggy.PluginValidationError, observer: object) -> str:
    for name in dir(observer):
        if name.startswith("heron_") and name not in HOOK_NAMES:
            return f"{name!r} is not a hook{nearest(name, HOOK_NAMES)}; known: {known(HOOK_NAMES)}"
    return str(error).splitlines()[-1]
