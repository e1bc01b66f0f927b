"""Socket paths: in the run directory, and short enough for the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import LimitExceededError
from heron.ipc.endpoint import PATH_LIMIT_BYTES, check_run_dir, instance_endpoint


def test_a_run_directory_with_a_long_path_is_refused_before_any_process_starts() -> None:
    """bind() fails later, and its error has no remedy."""
    check_run_dir(Path("/tmp/heron-123456"))  # noqa: S108  # a name, nothing is made there
    with pytest.raises(LimitExceededError, match="107 bytes; set run"):
        check_run_dir(Path("/" + "x" * 90))


def test_the_longest_allowed_directory_allows_the_longest_endpoint() -> None:
    """The check must be as strict as the longest endpoint in use."""
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


def test_each_session_and_incarnation_has_its_own_endpoint() -> None:
    """A message for an earlier incarnation must not reach a later one."""
    run_dir = Path("/run")
    places = {instance_endpoint(run_dir, 1, 2, incarnation, attempt) for incarnation in (0, 1) for attempt in (1, 2)}
    assert len(places) == 4
