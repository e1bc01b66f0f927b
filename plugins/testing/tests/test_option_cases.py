"""The cases of the contract that look at options: a driver that breaks a rule does not get past them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import msgspec
import pytest

from heron.errors import ConfigError
from heron.spi.driver import Driver
from heron.spi.options import Secret, decode_options
from heron_testing.contracts.driver import DriverContract


class Options(msgspec.Struct, frozen=True):
    """With a password."""

    root: str = "/"
    password: Secret = ""


class Upper(msgspec.Struct, frozen=True):
    """With a name that no variable can have."""

    Root: str = "/"


class Good(Driver):
    """Keeps its password to itself."""

    options_type: ClassVar[type] = Options

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """As it should be."""
        decode_options(options, Options, "uploader")
        return cls()


class Leaky(Good):
    """Tells what it was given."""

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """As it should not be."""
        msg = f"cannot sign in: {options}"
        raise ConfigError(msg)


class Undeclared(Good):
    """Takes options that it does not declare."""

    options_type: ClassVar[type] = Driver.options_type


class Misnamed(Good):
    """Declares a key in capitals."""

    options_type: ClassVar[type] = Upper


def cases(driver: type[Driver]) -> DriverContract:
    class Suite(DriverContract):
        family = "uploader"
        name = "made-up"
        driver_class = driver

    return Suite()


def test_good_driver_passes() -> None:
    """The rules can be kept."""
    cases(Good).test_shows_no_secret_in_a_message({})
    cases(Good).test_declares_the_options_that_it_takes({"root": "/x"})


def test_driver_that_shows_its_secret_fails() -> None:
    """Its messages would end up in a ticket."""
    with pytest.raises(AssertionError):
        cases(Leaky).test_shows_no_secret_in_a_message({})


@pytest.mark.parametrize(("driver", "options"), [(Undeclared, {"root": "/x"}), (Misnamed, {})])
def test_driver_whose_schema_is_not_its_own_fails(driver: type[Driver], options: dict[str, object]) -> None:
    """Its profile would be refused, or could not be set from the environment."""
    with pytest.raises(AssertionError):
        cases(driver).test_declares_the_options_that_it_takes(options)
