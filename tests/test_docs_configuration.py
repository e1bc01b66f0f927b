"""The page of all settings agrees with the code."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from heron.api.config_key import CONFIG_KEYS, ConfigKey, ValueType
from heron.kernel.settings import EngineSettings

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "configuration.md").read_text(encoding="utf-8").splitlines()


def default_of(key: ConfigKey) -> str:
    if key.default is None:
        return "unset"
    if isinstance(key.default, bool):
        return str(key.default).lower()
    if isinstance(key.default, tuple):
        return "none"
    return f"{key.default:g}" if isinstance(key.default, float) else str(key.default)


def values_of(key: ConfigKey) -> str:
    if key.type is ValueType.CHOICE:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    if key.type is ValueType.BOOL:
        return "`true`, `false`"
    if key.type is ValueType.STRING:
        return "text"
    if key.type is ValueType.JSON:
        return "JSON"
    high = f" to {key.high:g}" if key.high is not None else ""
    low = "above 0" if key.low is None else f"{key.low:g} or more" if not high else f"{key.low:g}"
    off = "" if key.off is None else f", or {key.off}"
    return f"{key.unit}, {low}{high}{off}" if key.unit else f"{low}{high}{off}"


def topology_row(key: ConfigKey) -> str:
    scope = "topology, component" if key.component else "topology"
    return f"| `{key.name}` | {default_of(key)} | {values_of(key)} | {scope} | {key.meaning} |"


def engine_rows() -> dict[str, str]:
    """The row of each engine setting, by key."""
    return {
        data["key"]: f"| `{data['key']}` | {each.default} | {data['unit'] or 'text'} | {data['meaning']} |"
        for each in fields(EngineSettings)
        if (data := each.metadata)
    }


@pytest.mark.parametrize("key", CONFIG_KEYS.values(), ids=lambda key: key.name)
def test_the_page_has_every_topology_key(key: ConfigKey) -> None:
    """Authors read this page before the source; a wrong default here misleads them."""
    assert topology_row(key) in PAGE


@pytest.mark.parametrize("key", engine_rows())
def test_the_page_has_every_engine_setting(key: str) -> None:
    """People who write profiles read this table."""
    assert engine_rows()[key] in PAGE


def test_the_page_has_no_unknown_key() -> None:
    """A renamed key would stay here, and the engine would refuse it."""
    known = {topology_row(key) for key in CONFIG_KEYS.values()} | set(engine_rows().values())
    rows = [line for line in PAGE if line.startswith(("| `topology.", "| `heron."))]
    assert [line for line in rows if line not in known] == []
