"""Announces lifecycle events to an observer in a test, as the processes of a run do."""

from __future__ import annotations

from heron.errors import PluginError, known
from heron.kernel.observers import Observers

__all__ = ["announce"]


def announce(observer: object, hook: str, **facts: object) -> None:
    """Call the observer's method for one event, in this thread and without a time limit.

    `observer` is the object of an entry point in the group ``heron.hooks``: an instance, a module, or a class without
    constructor arguments. `hook` is a name in `heron.spi.hooks.HOOK_NAMES`. `facts` are all facts of the hook, as in
    `heron.spi.hooks.HookSpecs`; the method receives those that it takes.

    An exception of the method reaches the caller. In a run it is logged, and the run continues.

    Raises:
        PluginError: when a method ``heron_…`` of the observer is not a hook or takes a fact that its hook does not
            have, when a class cannot be constructed, or when the observer has no method for `hook`.
        TypeError: when `facts` are not exactly the facts of the hook.
    """
    observers = Observers()
    observers.add(getattr(observer, "__name__", type(observer).__name__), observer)
    if hook not in observers.followed():
        msg = f"the observer has no method {hook!r}; its methods: {known(observers.followed())}"
        raise PluginError(msg)
    for reaction in observers.reactions(hook, facts):
        reaction.call()
