"""What the end-to-end tests of this repository share: the mark `matrix`, Java, and the folders of their programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import UsageError
from heron_spark_kit.java import check_java
from heron_testing_servers.absence import not_here

_HERE = Path(__file__).parent
_IN_DEV_TEST = ("guarantee", "starts_nothing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the mark `matrix` to each test below this folder that `./dev test` does not run."""
    for item in items:
        if item.path.is_relative_to(_HERE) and not any(map(item.get_closest_marker, _IN_DEV_TEST)):
            item.add_marker("matrix")


@pytest.fixture
def sandbox_programs() -> Path:
    """The topologies that these tests start by their name."""
    return _HERE / "topologies"


@pytest.fixture
def examples() -> Path:
    """The folder of the examples."""
    return _HERE.parents[1] / "examples"


@pytest.fixture
def java() -> None:
    """A Java that Spark can use, or the test is not run here."""
    try:
        check_java()
    except UsageError as error:
        not_here(str(error))
