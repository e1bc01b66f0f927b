"""The cases for drivers of every family, and the only way to skip a case of a contract.

A suite is a class with a fixture for the driver. The test of a driver subclasses the suite, sets `driver_class` and
`name`, and overrides fixtures such as `options`.
"""

from __future__ import annotations

import abc
import difflib
import gc
import importlib.metadata
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heron.clock import monotonic_s
from heron.driver_kit.loading import contract_versions, deprecation, open_driver
from heron.errors import ConfigError, HeronError
from heron.spi.driver import Driver, DriverRef
from heron.spi.families import FAMILIES
from heron.spi.metricsink import MetricsSink
from heron.spi.options import option_fields, option_problems
from heron.spi.statemgr import StateManager
from heron_testing.faults import Fault, Faults

__all__ = ["ASKED", "DriverContract", "in_processor_time", "in_time", "needed", "requires"]

ASKED = {"away": ("files", "server"), "full": ("files",), "silent": ("server",), "answers_lost": ("server",)}
"""The capability flags that ask for each fault."""

_PRESSURE = Path("/proc/pressure/cpu")
_SECRET = "kept-to-itself-4711"  # noqa: S105 - not one


def requires(driver: Driver, *flags: str) -> None:
    """Skip the case unless the driver declares one of the flags. No other skip is allowed in a contract suite."""
    if not driver.capabilities & set(flags):
        pytest.skip(f"{type(driver).__name__} does not declare the capability {' or '.join(map(repr, flags))}")


def needed(driver: Driver, faults: Faults, name: str) -> Fault:
    """Return the fault of that name, a field of `Faults`; skip the case if no flag of the driver asks for it.

    If a flag asks for the fault and `faults` does not offer it, the test fails: nothing shows the declared ability.
    """
    requires(driver, *ASKED[name])
    fault: Fault | None = getattr(faults, name)
    if fault is None:
        flags = " or ".join(repr(each) for each in ASKED[name])
        pytest.fail(f"{type(driver).__name__} declares {flags}: its fixture `faults` must offer {name!r}")
    return fault


@contextmanager
def in_time(limit_s: float) -> Iterator[None]:
    """Fail if the block takes longer than ``1.5 * limit_s + 1`` seconds.

    `limit_s` is the limit of the contract, in seconds. The time in which a process of this machine had to wait for a
    processor does not count, where Linux tells it (pressure stall information); the rest is for a busy machine.

    Raises:
        AssertionError: when the block takes longer.
    """
    start_s, busy_s = monotonic_s(), _busy_s()
    yield
    taken_s = monotonic_s() - start_s - (_busy_s() - busy_s)
    assert taken_s <= 1.5 * limit_s + 1.0, f"took {taken_s:.1f} s, the limit of the contract is {limit_s:g} s"


def _busy_s() -> float:
    """The seconds since the start of the machine in which processes waited for a processor."""
    try:
        some = _PRESSURE.read_text(encoding="ascii").splitlines()[0]
    except OSError:  # an older Linux, or another system
        return 0.0
    return int(some.rpartition("total=")[2]) / 1e6


@contextmanager
def in_processor_time(limit_s: float) -> Iterator[None]:
    """Fail if the block, which only computes, needs a processor for longer than ``3 * limit_s`` seconds.

    Other work on the machine does not count, and neither does a collection of the garbage of other tests. `limit_s` is
    the limit of the contract, in seconds; the rest is for a slow machine.

    Raises:
        AssertionError: when it needs longer.
    """
    collects = gc.isenabled()
    gc.disable()
    start_s = time.thread_time()
    try:
        yield
        taken_s = time.thread_time() - start_s
    finally:
        if collects:
            gc.enable()
    assert taken_s <= 3.0 * limit_s, f"took {taken_s:.2f} s of a processor, the limit of the contract is {limit_s:g} s"


class DriverContract(abc.ABC):
    """The cases for every driver. Subclasses name the driver and its options for tests."""

    family: str
    """The family, as in the entry-point group ``heron.FAMILY``."""

    name: str
    """The name of the driver in profiles, which is the name of its entry point."""

    driver_class: type[Driver]
    """The class that the entry point names."""

    @pytest.fixture
    def options(self) -> dict[str, object]:
        """The driver's section of a profile for one test; override it if a key has no default that suits a test."""
        return {}

    @pytest.fixture
    def faults(self) -> Faults:
        """The faults of the store or server behind the driver; override it if a flag of the driver asks for faults."""
        return Faults()

    def test_is_found_by_its_name(self) -> None:
        """Heron finds a driver only by its entry point, so a wrong one would fail the first run of a user."""
        found = importlib.metadata.entry_points(group=f"heron.{self.family}", name=self.name)
        assert {each.load() for each in found} == {self.driver_class}

    def test_states_the_version_of_its_contract(self) -> None:
        """An unsupported version is refused at load; a deprecated one works, and gives a warning here."""
        base = FAMILIES[self.family]
        assert self.driver_class.spi_version in contract_versions(base)
        if reason := deprecation(self.driver_class, base, f"{self.family} driver {self.name!r}", "this plugin"):
            warnings.warn(reason, DeprecationWarning, stacklevel=1)

    def test_opens_in_a_process_that_does_no_discovery(self, options: dict[str, object]) -> None:
        """Processes of a run load drivers by reference, with options that were JSON."""
        entry = f"{self.driver_class.__module__}:{self.driver_class.__qualname__}"
        driver = open_driver(DriverRef(self.family, self.name, entry, options), FAMILIES[self.family])
        assert type(driver) is self.driver_class
        if isinstance(driver, StateManager | MetricsSink):
            driver.close()

    def test_refuses_an_unknown_option_and_names_it(self, options: dict[str, object]) -> None:
        """A misspelt key without an error would be a setting without effect."""
        with pytest.raises(ConfigError, match="no_such_option"):
            self.driver_class.open({**options, "no_such_option": 1})

    def test_names_the_nearest_option(self, options: dict[str, object]) -> None:
        """Most unknown keys are typing mistakes; the message names the right key."""
        for key, value in options.items():
            misspelt = key[:-1] + "_"
            if not difflib.get_close_matches(misspelt, [key], n=1, cutoff=0.6):
                continue
            rest = {other: kept for other, kept in options.items() if other != key}
            with pytest.raises(ConfigError, match=key):
                self.driver_class.open({**rest, misspelt: value})

    def test_declares_the_options_that_it_takes(self, options: dict[str, object]) -> None:
        """A profile is checked against `options_type` before a driver is opened, so every key must be there."""
        assert option_problems(options, self.driver_class.options_type) == ()
        for field in option_fields(self.driver_class.options_type):
            assert field.name == field.name.lower(), f"{field.name}: no environment variable can name it"
            assert "__" not in field.name, f"{field.name}: environment variables have `__` between the parts of a path"
            assert field.name != "driver", "driver: profiles use this key for the name of the driver"

    def test_shows_no_secret_in_a_message(self, options: dict[str, object]) -> None:
        """People copy the output of commands into tickets and chats."""
        for field in option_fields(self.driver_class.options_type):
            if not field.secret:
                continue
            with pytest.raises(ConfigError) as caught:
                self.driver_class.open({**options, field.name: _SECRET, "no_such_option": _SECRET})
            assert _SECRET not in str(caught.value)
            with pytest.raises(ConfigError) as caught:
                self.driver_class.open({**options, field.name: {"a": _SECRET}})
            assert _SECRET not in str(caught.value)

    def test_check_is_quick_and_quiet(self, options: dict[str, object]) -> None:
        """`heron plugins check` calls `check` of each driver in turn, and prints the answer on one line."""
        driver = self.driver_class.open(options)
        with in_time(5.0):
            answer = driver.check(5.0)
        assert answer == answer.strip()
        assert "\n" not in answer
        if isinstance(driver, StateManager | MetricsSink):
            driver.close()

    def test_check_reports_that_its_store_is_away(self, options: dict[str, object], faults: Faults) -> None:
        """People should learn this before they submit a topology."""
        driver = self.driver_class.open(options)
        with needed(driver, faults, "away")(), in_time(2.0), pytest.raises(HeronError):
            driver.check(2.0)
        if isinstance(driver, StateManager | MetricsSink):
            driver.close()

    def test_declares_only_capabilities_of_its_family(self) -> None:
        """No code reads a flag that the family does not have."""
        module = __import__(FAMILIES[self.family].__module__, fromlist=["CAPABILITIES"])
        assert self.driver_class.capabilities <= getattr(module, "CAPABILITIES", self.driver_class.capabilities)
