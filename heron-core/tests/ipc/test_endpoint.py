"""Socket paths: inside the run directory, and never too long for the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import LimitExceededError
from heron.ipc.endpoint import PATH_LIMIT_BYTES, check_run_dir, instance_endpoint


def test_a_path_that_could_become_too_long_is_refused_before_anything_starts() -> None:
    """bind() fails late and without the remedy."""
    check_run_dir(Path("/tmp/heron-123456"))  # noqa: S108  # a name, nothing is made there
    with pytest.raises(LimitExceededError, match="107 bytes; set run"):
        check_run_dir(Path("/" + "x" * 90))


def test_the_longest_allowed_directory_holds_the_longest_names() -> None:
    """The check must be as strict as the longest endpoint that is really made."""
    length = max(size for size in range(40, PATH_LIMIT_BYTES) if _accepted(Path("/" + "x" * size)))
    longest = Path("/" + "x" * length)
    endpoint = instance_endpoint(longest, 9999, 99999, 2**32 - 1, 9999)
    assert len(endpoint.removeprefix("ipc://").encode()) <= PATH_LIMIT_BYTES


def _accepted(run_dir: Path) -> bool:
    try:
        check_run_dir(run_dir)
    except LimitExceededError:
        return False
    return True


def test_each_session_and_incarnation_has_a_place_of_its_own() -> None:
    """What was meant for a former life cannot arrive at a later one."""
    run_dir = Path("/run")
    places = {instance_endpoint(run_dir, 1, 2, incarnation, attempt) for incarnation in (0, 1) for attempt in (1, 2)}
    assert len(places) == 4
