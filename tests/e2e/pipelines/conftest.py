"""What tests of pipelines on Spark need of this machine."""

from __future__ import annotations

import pytest

from heron.errors import UsageError
from heron_spark_kit.java import check_java
from heron_testing_servers.absence import not_here


@pytest.fixture
def java() -> None:
    """A Java that Spark can use, or the test is not run here."""
    try:
        check_java()
    except UsageError as error:
        not_here(str(error))
