"""The root of all driver contracts, and the reference by which a process loads a driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import msgspec

__all__ = ["Driver", "DriverRef", "NoOptions", "ReferringOption"]


class NoOptions(msgspec.Struct, frozen=True):
    """The schema of a driver without options."""


class Driver(ABC):
    """The root of all driver contracts.

    A driver states the version of its contract and its optional abilities. The engine never derives either from the
    methods of the class.

    These rules hold for every method of every family, unless the method says otherwise:

    - *Success*: the effect that the method describes has happened, and other processes see it.
    - *Failure*: the method raises the error of its family, a `heron.errors.HeronError` that names the object, the fault
      and the remedy. Errors of other libraries are translated. Nothing was changed, or the change was undone, except
      where the method calls the outcome unknown.
    - *Cancellation*: a call may end at any instant, by ``KeyboardInterrupt`` in a command or by ``kill -9``. It then
      leaves the old state, the new state, or something that the next call of the same method replaces.
    - *Time*: the method returns or raises within its stated time, also when a server is silent.
    - *Names*: the caller checks names of topologies. The driver checks them again before it uses them in a path or key.
    - *Secrets* occur in options and values, and never in an error, a log or a URL for people.
    """

    spi_version: ClassVar[int]
    """The version of the family's contract that this driver implements, as an integer.

    The core loads versions ``OLDEST_SPI_VERSION`` to ``SPI_VERSION`` of the family's module. A version below
    ``SPI_VERSION`` is deprecated: the driver works, and the log has a warning that names the upgrade. The core keeps a
    version for at least two minor releases after its successor.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset()
    """Flags of the family, see ``CAPABILITIES`` in its module; the engine and the contract suite read them."""

    options_type: ClassVar[type] = NoOptions
    """The schema of the driver's section: a frozen `msgspec.Struct` or dataclass (see `heron.spi.options`)."""

    @classmethod
    @abstractmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver from its section of a profile: JSON values, keys without the family's prefix.

        It begins with ``decode_options(options, TheSchema, FAMILY)``, where the schema is `options_type`. No message of
        the driver ever contains the value of an option of type `Secret`.

        Each process that needs the driver calls it once, from its main thread. It may block up to 10 s.

        Raises:
            ConfigError: when a key is unknown or a value is not acceptable; names the key and the nearest known key.
        """

    def check(self, timeout_s: float) -> str:
        """Ask the server behind the driver whether it answers; change nothing there.

        The default is for drivers without a server. Commands (``heron plugins check``, ``heron profiles check``) call
        it on a driver that was just opened, from a separate thread. It may block for `timeout_s` seconds (0.1 to 60); a
        call that takes longer is abandoned.

        Returns:
            The name and address of the server in a few words (``ZooKeeper 3.9 at zk1:2181``), without any secret; ""
            for a driver without a server.

        Raises:
            HeronError: the error of the family, when the server does not answer in time or refuses this user; names the
                server, the fault and the remedy.
        """
        del timeout_s
        return ""


@dataclass(frozen=True, slots=True)
class ReferringOption:
    """An option whose value came from a reference: its path in the options, and the reference as written."""

    path: tuple[str | int, ...]
    written: str


@dataclass(frozen=True, slots=True)
class DriverRef:
    """A driver that a command has chosen, for processes that load it without discovery: ``module:Class``.

    `options` is its section with every reference resolved, so a `DriverRef` is only written to files of mode 0600.
    `secrets` are the texts in it that no message and no log may contain. `referring` are the options that came from
    references; a scheduler needs them to send the options to other machines without the resolved values.
    """

    family: str
    name: str
    entry: str
    options: dict[str, object] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    referring: tuple[ReferringOption, ...] = field(default=(), repr=False)
