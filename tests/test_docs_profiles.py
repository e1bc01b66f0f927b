"""The examples of docs/profiles.md are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heron_cli.catalog.drivers import Drivers
from heron_cli.profiles import load_profile, profile_entries
from heron_cli.profiles.yaml_file import parse_yaml

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "profiles.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_first_profile_on_the_page_works(tmp_path: Path) -> None:
    """Readers copy this profile."""
    (tmp_path / "mine.yaml").write_text(BLOCKS[0], encoding="utf-8")
    profile = load_profile("mine", Drivers().resolve, config_path=tmp_path, environ={})
    assert profile.engine.linger_s == 0.005


@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_is_yaml(block: str) -> None:
    """The indentation is valid too."""
    assert isinstance(parse_yaml(block, "docs/profiles.md"), dict)


def test_the_table_has_the_profiles_that_are_shipped() -> None:
    """The table lists no other profile."""
    table = PAGE.partition("## What is shipped")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    clusters = ["kubernetes", "nomad", "slurm", "yarn", "aurora", "spark"]
    order = ["local", "testing", "production", *clusters, "spark-batch", "spark-streaming"]
    assert named == sorted(named, key=order.index)
    assert set(named) == {each.name for each in profile_entries()}


def test_the_page_has_the_variables_of_the_profile_production() -> None:
    """An operator sets them before the first run."""
    source = next(each.source for each in profile_entries() if each.name == "production")
    for variable in re.findall(r"^[^#\n]*\$\{env:(\w+)\}", source.read_text(encoding="utf-8"), re.MULTILINE):
        assert f"`{variable}`" in PAGE
