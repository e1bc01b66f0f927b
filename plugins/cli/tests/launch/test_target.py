"""``PROFILE/ROLE/ENV``: the defaults of each part, and the characters that are refused."""

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
def test_each_part_has_a_default(text: str, target: Target) -> None:
    """The environment has a default even when a role is given."""
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
def test_other_forms_and_characters_are_refused(text: str) -> None:
    """The labels become parts of paths, metric names and shell commands."""
    with pytest.raises(UsageError):
        parse_target(text, "ann")


def test_an_invalid_user_name_is_refused_only_as_the_default_role() -> None:
    """Directory services allow names with backslashes and spaces."""
    assert parse_target("local/ads", "CORP\\ann").role == "ads"
    with pytest.raises(UsageError, match=r"the user name .* is not a valid role; give a role: local/ROLE"):
        parse_target("local", "CORP\\ann")
