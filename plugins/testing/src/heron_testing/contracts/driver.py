"""What every driver must do, whatever its family, and the one way to skip a case of a contract.

A suite is a class with a fixture for the driver; a driver's test subclasses it and overrides `driver_class`,
`family`, `name` and `options`.
"""

from __future__ import annotations

import abc
import difflib
import importlib.metadata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

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

__all__ = ["ASKED", "DriverContract", "in_time", "needed", "requires"]

ASKED = {"away": ("files", "server"), "full": ("files",), "silent": ("server",), "answers_lost": ("server",)}
"""The capabilities whose cases need a fault."""

_SECRET = "kept-to-itself-4711"  # noqa: S105 - not one


def requires(driver: Driver, *flags: str) -> None:
    """Skips the case unless the driver declares one of the flags; the only skip that a contract test may use."""
    if not driver.capabilities & set(flags):
        pytest.skip(f"{type(driver).__name__} does not declare the capability {' or '.join(map(repr, flags))}")


def needed(driver: Driver, faults: Faults, name: str) -> Fault:
    """The fault of that name (see `Faults`): skips where the driver's flags do not ask for it.

    Where they do, a test that does not offer it fails: what the flag says is then not shown.
    """
    requires(driver, *ASKED[name])
    fault: Fault | None = getattr(faults, name)
    if fault is None:
        flags = " or ".join(repr(each) for each in ASKED[name])
        pytest.fail(f"{type(driver).__name__} declares {flags}: its fixture `faults` has to offer {name!r}")
    return fault


@contextmanager
def in_time(limit_s: float) -> Iterator[None]:
    """Fails when the block takes longer than the contract's limit, and half of it again for a busy machine."""
    start_s = monotonic_s()
    yield
    taken_s = monotonic_s() - start_s
    assert taken_s <= 1.5 * limit_s + 1.0, f"took {taken_s:.1f} s, the contract says {limit_s:g} s"


class DriverContract(abc.ABC):
    """The cases that every driver meets. Subclasses say which driver, and how it is configured for tests."""

    family: str
    """The family, as in the entry-point group ``heron.FAMILY``."""

    name: str
    """The name a profile chooses the driver by."""

    driver_class: type[Driver]
    """The class behind the entry point."""

    @pytest.fixture
    def options(self) -> dict[str, object]:
        """The driver's section of a profile for one test; override it where a key has no default fit for tests."""
        return {}

    @pytest.fixture
    def faults(self) -> Faults:
        """What can be done to the store or server behind the driver; override it where the driver has one."""
        return Faults()

    def test_is_found_by_its_name(self) -> None:
        """The entry point is the only way into the driver: a wrong one would show only at a user's first run."""
        found = importlib.metadata.entry_points(group=f"heron.{self.family}", name=self.name)
        assert {each.load() for each in found} == {self.driver_class}

    def test_states_the_version_of_its_contract(self) -> None:
        """An unsupported version is refused at load; a deprecated one still works and gives a warning here."""
        base = FAMILIES[self.family]
        assert self.driver_class.spi_version in contract_versions(base)
        if reason := deprecation(self.driver_class, base, f"{self.family} driver {self.name!r}", "this plugin"):
            warnings.warn(reason, DeprecationWarning, stacklevel=1)

    def test_opens_in_a_process_that_does_no_discovery(self, options: dict[str, object]) -> None:
        """Role processes load drivers by reference, with the options as JSON gave them."""
        entry = f"{self.driver_class.__module__}:{self.driver_class.__qualname__}"
        driver = open_driver(DriverRef(self.family, self.name, entry, options), FAMILIES[self.family])
        assert type(driver) is self.driver_class
        if isinstance(driver, StateManager | MetricsSink):
            driver.close()

    def test_refuses_an_unknown_option_and_names_it(self, options: dict[str, object]) -> None:
        """A misspelt key that is ignored is a setting that silently does not hold."""
        with pytest.raises(ConfigError, match="no_such_option"):
            self.driver_class.open({**options, "no_such_option": 1})

    def test_names_the_nearest_option(self, options: dict[str, object]) -> None:
        """Most unknown keys are typing mistakes; the message has the right key in it."""
        for key, value in options.items():
            misspelt = key[:-1] + "_"
            if not difflib.get_close_matches(misspelt, [key], n=1, cutoff=0.6):
                continue
            rest = {other: kept for other, kept in options.items() if other != key}
            with pytest.raises(ConfigError, match=key):
                self.driver_class.open({**rest, misspelt: value})

    def test_declares_the_options_that_it_takes(self, options: dict[str, object]) -> None:
        """A profile is checked against `options_type` before a driver is opened; what is not in it is refused there."""
        assert option_problems(options, self.driver_class.options_type) == ()
        for field in option_fields(self.driver_class.options_type):
            assert field.name == field.name.lower(), f"{field.name}: a variable of the environment could not name it"
            assert "__" not in field.name, f"{field.name}: variables have `__` between the steps of a path"
            assert field.name != "driver", "driver: the key that names the driver"

    def test_shows_no_secret_in_a_message(self, options: dict[str, object]) -> None:
        """What a command prints ends up in tickets and chats."""
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
        """`heron plugins check` asks every driver in turn; what answers is one line for a person to read."""
        driver = self.driver_class.open(options)
        with in_time(5.0):
            answer = driver.check(5.0)
        assert answer == answer.strip()
        assert "\n" not in answer
        if isinstance(driver, StateManager | MetricsSink):
            driver.close()

    def test_check_says_that_its_store_is_away(self, options: dict[str, object], faults: Faults) -> None:
        """Before a topology is submitted is the time to learn it, with a remedy."""
        driver = self.driver_class.open(options)
        with needed(driver, faults, "away")(), in_time(2.0), pytest.raises(HeronError):
            driver.check(2.0)
        if isinstance(driver, StateManager | MetricsSink):
            driver.close()

    def test_declares_only_capabilities_of_its_family(self) -> None:
        """A flag that the family does not know would be read by nobody."""
        module = __import__(FAMILIES[self.family].__module__, fromlist=["CAPABILITIES"])
        assert self.driver_class.capabilities <= getattr(module, "CAPABILITIES", self.driver_class.capabilities)
