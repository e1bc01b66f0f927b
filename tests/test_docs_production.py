"""The examples of docs/production.md are correct: profiles, distributions, variables, actions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from heron_cli.catalog.drivers import Drivers
from heron_cli.profiles import load_profile
from heron_cli.profiles.yaml_file import parse_yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
PRODUCTION, HDFS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
(POLICY,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the secret of the page."""
    secrets = tmp_path / ".heron" / "secrets"
    secrets.mkdir(parents=True, mode=0o700)
    (secrets / "zookeeper").write_text("open sesame\n", encoding="utf-8")
    (secrets / "zookeeper").chmod(0o600)
    (tmp_path / ".heron" / "profiles").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def document(text: str) -> dict[str, Any]:
    """Parse a block of the page."""
    found = parse_yaml(text, "docs/production.md")
    assert isinstance(found, dict)
    return found


def test_the_profile_on_the_page_needs_only_its_secret(home: Path) -> None:
    """Every option fits the schema of its driver, and no variable of the shipped file is needed."""
    (home / ".heron" / "profiles" / "production.yaml").write_text(PRODUCTION, encoding="utf-8")
    profile = load_profile("production", Drivers().resolve, environ={})
    assert profile.statemgr.options["password"] == "open sesame"
    assert (profile.statemgr.name, profile.uploader.name) == ("zookeeper", "s3")
    assert [each.name for each in profile.metricsinks] == ["file", "graphite", "scribe", "prometheus"]
    assert profile.engine.network_host == "eth0"


def test_the_other_uploader_fits_into_it(home: Path) -> None:
    """An override replaces a whole section."""
    both = document(PRODUCTION) | document(HDFS)
    (home / ".heron" / "profiles" / "mine.yaml").write_text(json.dumps(both), encoding="utf-8")
    assert load_profile("mine", Drivers().resolve, environ={}).uploader.name == "hdfs"


def test_the_distributions_to_install_are_those_of_the_profile() -> None:
    """Readers copy the pip lines, so each named distribution must exist and the profile must need it."""
    (line,) = re.findall(r"pip install (heron-bundle-local .+)", PAGE)
    named = set(line.split())
    assert {each for each in named if (ROOT / "plugins" / each.removeprefix("heron-")).is_dir()} == named
    profile = document(PRODUCTION)
    wanted = {f"heron-{family}-{profile[family]['driver']}" for family in ("statemgr", "uploader")}
    wanted |= {f"heron-metricsink-{each['driver']}" for each in profile["metricsink"]}
    assert wanted - named == {"heron-metricsink-file"}, "which the bundle has"


def test_the_policy_has_the_actions_that_the_uploader_asks_for() -> None:
    """The page, the README and the error for a user without rights name the same actions."""
    actions = {action for each in json.loads(POLICY)["Statement"] for action in each["Action"]}
    readme = (ROOT / "plugins" / "uploader-s3" / "README.md").read_text(encoding="utf-8")
    refusal = (ROOT / "plugins" / "uploader-s3" / "src" / "heron_uploader_s3" / "s3_errors.py").read_text("utf-8")
    assert actions == set(re.findall(r"s3:\w+", readme))
    assert actions == set(re.findall(r"s3:[A-Z]\w+", refusal))
