"""Calls code of third parties: every exception becomes a `HeronError`, and a call can have a time limit.

The error names the driver, the method and the remedy, so a command can report it and go on with the rest.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable
from typing import TypeVar

from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.loading import open_driver
from heron.driver_kit.redaction import redact
from heron.errors import (
    CheckpointError,
    HeronError,
    PackageError,
    PackingError,
    PluginError,
    SchedulerError,
    StateError,
)
from heron.spi.driver import Driver, DriverRef
from heron.spi.families import FAMILIES
from heron.spi.statemgr import StateManager

__all__ = ["guarded", "open_guarded", "open_guarded_statemgr", "within"]

D = TypeVar("D", bound=Driver)
T = TypeVar("T")

_ERRORS: dict[str, type[HeronError]] = {
    "scheduler": SchedulerError,
    "statemgr": StateError,
    "uploader": PackageError,
    "packing": PackingError,
    "checkpoint": CheckpointError,
}


def open_guarded(ref: DriverRef, base: type[D]) -> D:
    """Open the driver that `ref` names. Raises as `heron.driver_kit.loading.open_driver` does."""
    return guarded(open_driver(ref, base), ref)


def open_guarded_statemgr(ref: DriverRef) -> StateManager:
    """Open the state manager that `ref` names, for values of any size. Raises as `open_guarded` does."""
    return guarded(open_statemgr(ref), ref)


def guarded(driver: D, ref: DriverRef) -> D:
    """Make every method of the contract raise only `HeronError`, without the secrets of `ref` in the message.

    The driver keeps its identity: its class becomes a subclass that overrides the methods of the contract.
    """
    made = type(driver)
    namespace: dict[str, object] = {"__slots__": (), "__module__": made.__module__, "__qualname__": made.__qualname__}
    owner: list[type] = []  # the subclass, which exists after its methods
    for name in _methods(FAMILIES[ref.family]):
        namespace[name] = _guarded_method(made, owner, name, ref)
    try:
        owner.append(_subclass(made, namespace))
        object.__setattr__(driver, "__class__", owner[0])  # a frozen dataclass refuses assignments
    except Exception as error:
        msg = (
            f"{ref.family} driver {ref.name!r} ({ref.entry}): its class cannot be extended: {error}; "
            f"a mistake in the driver: upgrade it, see `heron plugins show {ref.family} {ref.name}`"
        )
        raise PluginError(redact(msg, ref.secrets)) from (None if ref.secrets else error)
    return driver


def _subclass(made: type[Driver], namespace: dict[str, object]) -> type:
    return types.new_class(made.__name__, (made,), exec_body=lambda body: body.update(namespace))


def _methods(base: type[Driver]) -> set[str]:
    """Return the names of the public methods of a contract."""
    found = {name for each in base.__mro__ for name, value in vars(each).items() if inspect.isfunction(value)}
    return {name for name in found if not name.startswith("_")}


def _guarded_method(made: type[Driver], owner: list[type], name: str, ref: DriverRef) -> Callable[..., object]:
    @functools.wraps(getattr(made, name))
    def call(self: Driver, *args: object, **kwargs: object) -> object:
        try:
            method: Callable[..., object] = getattr(super(owner[0], self), name)
            return method(*args, **kwargs)
        except HeronError as error:
            if (text := redact(str(error), ref.secrets)) == str(error):
                raise
            raise type(error)(text) from None
        except (Exception, SystemExit) as error:
            kind = _ERRORS.get(ref.family, PluginError)
            msg = (
                f"{ref.family} driver {ref.name!r} ({ref.entry}): {name} raised {type(error).__name__}: {error}; "
                f"a mistake in the driver: upgrade it, see `heron plugins show {ref.family} {ref.name}`"
            )
            raise kind(redact(msg, ref.secrets)) from (None if ref.secrets else error)

    return call


def within(limit_s: float, what: str, call: Callable[[], T]) -> T:
    """Return what `call` returns. It runs on a thread, which is abandoned when it takes longer than `limit_s`.

    Raises:
        HeronError: as `call` does.
        PluginError: when `call` takes longer, raises another exception, or tries to end the process.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # a plugin may raise anything; it is translated below
            errors.append(error)

    thread = threading.Thread(target=run, name=f"limited-{what}", daemon=True)
    thread.start()
    thread.join(limit_s)
    if errors and isinstance(errors[0], HeronError):
        raise errors[0]
    if errors:
        fault = (
            "a plugin must not end the process" if not isinstance(errors[0], Exception) else "a mistake in the plugin"
        )
        msg = f"{what}: raised {type(errors[0]).__name__}: {errors[0]}; {fault}: upgrade or uninstall it"
        raise PluginError(msg) from errors[0]
    if not results:
        msg = f"{what}: not done after {limit_s:g} s; it is abandoned"
        raise PluginError(msg)
    return results[0]
