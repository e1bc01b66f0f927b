"""The README of each driver has a table of its options, as the driver declares them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heron.driver_kit.loading import load_object
from heron.spi.driver import Driver
from heron.spi.options import option_fields
from heron_cli.catalog.drivers import Drivers

PLUGINS = Path(__file__).resolve().parents[1] / "plugins"
ROW = re.compile(r"^\| `([a-z0-9_.]+)` \|", re.MULTILINE)
INSTALLED = [each for each in Drivers().catalog() if (PLUGINS / f"{each.family}-{each.name}").is_dir()]


def options_of(entry: str) -> set[str]:
    driver = load_object(entry)
    assert isinstance(driver, type)
    assert issubclass(driver, Driver)
    return {each.name for each in option_fields(driver.options_type)}


@pytest.mark.parametrize("driver", INSTALLED, ids=lambda each: f"{each.family}-{each.name}")
def test_readme_lists_exactly_the_options_of_the_driver(driver: object) -> None:
    """People who write profiles use this table; they miss an absent key, and an extra key is refused."""
    family, name, entry = (getattr(driver, each) for each in ("family", "name", "entry"))
    readme = (PLUGINS / f"{family}-{name}" / "README.md").read_text(encoding="utf-8")
    section = readme.partition("\n## Configuration\n")[2].partition("\n## ")[0]
    assert {key for key in ROW.findall(section) if not key.startswith("topology.")} == options_of(entry)
