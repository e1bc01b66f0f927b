"""PROFILE/ROLE/ENV: defaults for each part, and no characters that would surprise anybody later."""

from __future__ import annotations

import pytest

from heron.errors import UsageError
from heron_cli.launch.target import Target, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("local", Target("local", "ann", "default")),
        ("local/ads", Target("local", "ads", "default")),
        ("local/ads/prod", Target("local", "ads", "prod")),
        ("local//prod", Target("local", "ann", "prod")),
        ("local/", Target("local", "ann", "default")),
        ("local/a.b-c_d/1", Target("local", "a.b-c_d", "1")),
    ],
)
def test_each_part_has_a_default_of_its_own(text: str, target: Target) -> None:
    """A role without an environment is no reason for an empty one."""
    assert parse_target(text, "ann") == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/ads",
        "local/a/b/c",
        "local/a b",
        "local/..",
        "local/.a",
        "local/-a",
        "local/ä",
        "local/a\n",
        "local/" + "a" * 65,
    ],
)
def test_others_are_refused(text: str) -> None:
    """They end in paths, metric names and shells."""
    with pytest.raises(UsageError):
        parse_target(text, "ann")


def test_a_user_name_that_cannot_be_a_role_is_only_refused_where_it_would_be_one() -> None:
    """Directory services know names with backslashes and spaces."""
    assert parse_target("local/ads", "CORP\\ann").role == "ads"
    with pytest.raises(UsageError, match=r"the user name .* is not a valid role; give a role: local/ROLE"):
        parse_target("local", "CORP\\ann")
