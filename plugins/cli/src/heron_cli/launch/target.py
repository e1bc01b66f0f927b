"""``PROFILE[/ROLE[/ENV]]``: the profile, role and environment of a submission.

Role and environment are labels, as in Heron: they occur in the state, in lists and in events, and select nothing. The
name of a topology is unique in its state manager, whatever its labels are. The default role is the user's name, and
the default environment is ``default``.
"""

from __future__ import annotations

import getpass
import re
from dataclasses import dataclass

from heron.errors import UsageError

__all__ = ["DEFAULT_ENV", "Target", "parse_target", "user_name"]

DEFAULT_ENV = "default"

_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_FORM = "PROFILE[/ROLE[/ENV]]"


@dataclass(frozen=True, slots=True)
class Target:
    """A profile, a role and an environment."""

    profile: str
    role: str
    env: str


def parse_target(text: str, user: str) -> Target:
    """Split ``PROFILE[/ROLE[/ENV]]``; a part that is empty or missing has its default.

    Raises:
        UsageError: when there are more parts, no profile, or role or environment have other characters.
    """
    profile, *labels = text.split("/")
    if not profile or len(labels) > 2:
        msg = f"{text!r:.100}: not of the form {_FORM}; see `heron profiles list`"
        raise UsageError(msg)
    role, env = (*labels, "", "")[:2]
    _check("role", role, text)
    _check("environment", env, text)
    if not role and not _LABEL.fullmatch(user):
        msg = f"role: the user name {user!r:.80} is not a valid role; give a role: {profile}/ROLE"
        raise UsageError(msg)
    return Target(profile, role or user, env or DEFAULT_ENV)


def user_name() -> str:
    """Return the name of the user; "unknown" when the user has none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _check(what: str, label: str, text: str) -> None:
    if label and not _LABEL.fullmatch(label):
        msg = (
            f"{text!r:.100}: {what} {label!r:.80} is refused; use 1 to 64 of the characters A-Z a-z 0-9 _ - . "
            "and do not begin with - or ."
        )
        raise UsageError(msg)
