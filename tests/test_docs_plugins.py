"""The page of plugins says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from heron.spi.families import FAMILIES
from heron.spi.hooks import HOOK_FACTS, HookSpecs

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "plugins.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<hooks>`heron_[^|]*) \| (?P<where>[^|]*) \| (?P<facts>[^|]*) \|$", re.MULTILINE)


def test_every_hook_stands_on_the_page_with_its_facts() -> None:
    """Whoever writes an observer reads this table; a fact that is missing there is never used."""
    found = {
        hook: (row["where"], frozenset(row["facts"].split(", ")))
        for row in ROW.finditer(PAGE)
        for hook in re.findall(r"heron_\w+", row["hooks"])
    }
    assert {hook: facts for hook, (_, facts) in found.items()} == HOOK_FACTS
    for hook, (where, _) in found.items():
        text = vars(HookSpecs)[hook].__doc__
        assert f"Called in the {where.removeprefix('the ')}" in text


def test_every_family_stands_on_the_page() -> None:
    """With its contract by its name."""
    for family, base in FAMILIES.items():
        assert f"| {family} | `{base.__module__}.{base.__qualname__}` |" in PAGE
