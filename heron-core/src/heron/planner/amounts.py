"""Amounts in configuration: cores, bytes with a unit, counts, percentages."""

from __future__ import annotations

import math
import re
from typing import Final

from heron.errors import ConfigError, known

__all__ = ["MIN_CORES", "parse_bytes", "parse_cores", "parse_count", "parse_percent"]

MIN_CORES: Final = 0.001
"""No scheduler grants less than a thousandth of a core."""

_UNITS: Final = {
    "": 1,
    "b": 1,
    **{
        spelling: 1024**power
        for power, letter in enumerate("kmgt", 1)
        for spelling in (letter, f"{letter}b", f"{letter}ib")
    },
}
_AMOUNT: Final = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s*([a-z]*)", re.ASCII | re.IGNORECASE)
_MAX_BYTES: Final = 1 << 60  # far above any machine, and it fits into a 64-bit integer of JSON readers
_MAX_CORES: Final = 1_000_000.0


def parse_bytes(value: object, place: str, minimum: int = 1) -> int:
    """Reads a number of bytes: 1073741824, "1073741824", "512MB", "1.5 GiB"; K, M, G and T are powers of 1024.

    Raises:
        ConfigError: when it is something else, below `minimum` bytes or above 1 EiB; the message starts with `place`.
    """
    number: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and (amount := _AMOUNT.fullmatch(value.strip())):
        unit = _UNITS.get(amount[2].lower())
        if unit is None:
            msg = f"{place}: {value!r} has the unknown unit {amount[2]!r}; known: {known(_UNITS.keys() - {''})}"
            raise ConfigError(msg)
        number = (int(amount[1]) if "." not in amount[1] else float(amount[1])) * unit
    if number is None or not minimum <= number <= _MAX_BYTES:
        bounds = f"{minimum} bytes to 1 EiB"
        msg = f"{place}: {value!r} is not an amount of {bounds}; write bytes or a unit, as in '512MB'"
        raise ConfigError(msg)
    return int(number)


def parse_cores(value: object, place: str, minimum: float = MIN_CORES) -> float:
    """Reads a number of cores: 1, 0.5, "2.5".

    Raises:
        ConfigError: when it is something else, below `minimum` or above 1,000,000 cores; begins with `place`.
    """
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = min(value, _MAX_CORES + 1)
    elif isinstance(value, str) and (amount := _AMOUNT.fullmatch(value.strip())) and not amount[2]:
        number = float(amount[1])
    if not minimum <= number <= _MAX_CORES:
        msg = f"{place}: {value!r} is not a number of cores from {minimum:g} to 1,000,000; write a number such as 0.5"
        raise ConfigError(msg)
    return float(number)


def parse_count(value: object, place: str) -> int:
    """Reads a positive integer: 3, "3".

    Raises:
        ConfigError: when it is something else; begins with `place`.
    """
    if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value.strip(), re.ASCII):
        value = int(value)
    if type(value) is not int or value < 1:
        msg = f"{place}: {value!r} is not an integer of 1 or more"
        raise ConfigError(msg)
    return value


def parse_percent(value: object, place: str) -> float:
    """Reads a percentage from 0 to 100: 10, 12.5, "10".

    Raises:
        ConfigError: when it is something else; begins with `place`.
    """
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = min(value, 101)
    elif isinstance(value, str) and (amount := _AMOUNT.fullmatch(value.strip())) and not amount[2]:
        number = float(amount[1])
    if not 0 <= number <= 100:
        msg = f"{place}: {value!r} is not a percentage from 0 to 100; write a number such as 10"
        raise ConfigError(msg)
    return float(number)
