"""The pipeline of `test_on_kafka` on Spark: as a batch job over the topic, and as a query whose JVM dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_run import kill_jvm
from test_on_kafka import Feed, feed

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["feed"]

pytestmark = pytest.mark.servers

_RUN_S = 240.0


def test_batch_over_a_topic_is_a_recount(sandbox: Sandbox, feed: Feed) -> None:
    """History of the same topic by the same file."""
    feed.fill(0)
    feed.fill(1)
    run = sandbox.start("kafka_counts.py", "--profile", "spark-batch", args=(*feed.args, "--until", "latest"))
    run.finished(_RUN_S)
    assert feed.results() == feed.recount()


def test_query_is_a_recount_when_the_jvm_dies(sandbox: Sandbox, feed: Feed) -> None:
    """Offsets are in the record of each batch, and the results of a batch are in the topic once."""
    feed.fill(0)
    run = sandbox.start("kafka_counts.py", "--profile", "spark-streaming", args=feed.args)
    run.until(lambda: len(feed.results()) > 5, "results of the first half", _RUN_S)
    kill_jvm(run)
    feed.fill(1)
    feed.end()
    wanted = feed.recount()
    run.until(lambda: len(feed.results()) >= len(wanted), "all results", _RUN_S)
    assert feed.results() == wanted
