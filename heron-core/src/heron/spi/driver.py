"""What every driver of a choose-one family has in common, and how one is named to a process that must load it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import msgspec

__all__ = ["Driver", "DriverRef", "NoOptions", "ReferringOption"]


class NoOptions(msgspec.Struct, frozen=True):
    """The schema of a driver that has no options."""


class Driver(ABC):
    """The root of all driver contracts.

    A driver states the version of the contract it was written for and the optional things it can do; neither is
    ever guessed from its methods.

    What holds of every method of every family, unless it says otherwise:

    - *Success*: what it says has happened, and another process sees it.
    - *Failure*: it raises the error of its family, a `heron.errors.HeronError` that names the thing, what is wrong and
      the remedy; errors of other libraries are translated. Nothing was changed, or what was is undone, except where
      the method calls the outcome unknown.
    - *Cancellation*: a call may end at any instant, by ``KeyboardInterrupt`` in a command, by ``kill -9`` anywhere. The
      old or the new is left then, never a half; or something that the next call of the same kind replaces.
    - *Time*: it returns or raises within the time it states; a server that is silent is no excuse.
    - *Names*: topologies are checked by the caller, and by the driver again before they become part of a path or key.
    - *Secrets* stand in options and values, and never in an error, a log or a URL for people.
    """

    spi_version: ClassVar[int]
    """The version of the family's contract that this driver implements, as an integer.

    The core loads versions ``OLDEST_SPI_VERSION`` to ``SPI_VERSION`` of the family's module. A version below
    ``SPI_VERSION`` is deprecated: the driver works, and the log has a warning that names the upgrade. The core keeps a
    version for at least two minor releases after its successor.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset()
    """Flags from the family's own list; the contract suite reads them."""

    options_type: ClassVar[type] = NoOptions
    """The schema of the driver's section: a frozen `msgspec.Struct` or dataclass (see `heron.spi.options`)."""

    @classmethod
    @abstractmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Makes a driver from its own section of a profile (JSON values, keys without the family's prefix).

        It begins with ``decode_options(options, TheSchema, FAMILY)``, where the schema is `options_type`. No message
        of the driver, then or later, contains the value of an option that the schema calls a `Secret`.

        Called once in each process that needs the driver, from its main thread; may block up to 10 s.

        Raises:
            ConfigError: when a key is unknown or a value is not acceptable; names the key and the nearest known.
        """

    def check(self, timeout_s: float) -> str:
        """Asks the server behind the driver whether it answers, and changes nothing there.

        By default there is nothing to ask. Called by commands (``heron plugins check``, ``heron profiles check``) on a
        driver that was just opened, from a thread of its own; it may block for `timeout_s` seconds (0.1 to 60), and is
        abandoned when it takes longer.

        Returns:
            What answered, in a few words (``ZooKeeper 3.9 at zk1:2181``), without any secret; "" where there is
            nothing to ask.

        Raises:
            HeronError: the family's own error when the server does not answer in that time, or not to this user; names
                the server, what is wrong and the remedy.
        """
        del timeout_s
        return ""


@dataclass(frozen=True, slots=True)
class ReferringOption:
    """An option whose value came from a reference: where it stands among the options, and how it is written."""

    path: tuple[str | int, ...]
    written: str


@dataclass(frozen=True, slots=True)
class DriverRef:
    """A driver that the command has chosen, for processes that load it without discovery: ``module:Class``.

    `options` are its section with every reference resolved, so this travels in files of mode 0600 only. `secrets` are
    the texts in it that no message and no log may contain. `referring` are the options that came from references, for
    who has to send the options on without what those stood for.
    """

    family: str
    name: str
    entry: str
    options: dict[str, object] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    referring: tuple[ReferringOption, ...] = field(default=(), repr=False)
