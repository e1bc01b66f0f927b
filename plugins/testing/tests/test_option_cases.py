"""The cases of the contract about options fail for a driver that breaks a rule."""

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
    """Options with a password."""

    root: str = "/"
    password: Secret = ""


class Upper(msgspec.Struct, frozen=True):
    """Options with a name that no environment variable can have."""

    Root: str = "/"


class Good(Driver):
    """A driver whose messages do not contain its password."""

    options_type: ClassVar[type] = Options

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Return a driver without reading the options."""
        decode_options(options, Options, "uploader")
        return cls()


class Leaky(Good):
    """A driver whose message contains its options."""

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Raise an error with all options."""
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
    """A driver can fulfil the rules."""
    cases(Good).test_shows_no_secret_in_a_message({})
    cases(Good).test_declares_the_options_that_it_takes({"root": "/x"})


def test_driver_that_shows_its_secret_fails() -> None:
    """People copy messages into tickets."""
    with pytest.raises(AssertionError):
        cases(Leaky).test_shows_no_secret_in_a_message({})


@pytest.mark.parametrize(("driver", "options"), [(Undeclared, {"root": "/x"}), (Misnamed, {})])
def test_driver_whose_schema_is_not_its_own_fails(driver: type[Driver], options: dict[str, object]) -> None:
    """Its profile would be refused, or no environment variable could set the option."""
    with pytest.raises(AssertionError):
        cases(driver).test_declares_the_options_that_it_takes(options)
