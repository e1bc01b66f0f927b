"""Metrics of an author that are no numbers."""

from __future__ import annotations

from typing import Any

from heron.api.metrics import IMetric
from heron.author_text import traceback_text
from heron.instance.metrics.task_metrics import TaskMetrics


class Assigned(IMetric):
    """Gives what a test has assigned."""

    def __init__(self, value: object) -> None:
        self._value = value

    def get_value_and_reset(self) -> Any:  # noqa: ANN401  # also what is wrong
        return self._value


def test_a_metric_and_a_backlog_that_are_no_numbers_are_named_by_their_class() -> None:
    """An author may assign a value of a record to them."""
    secret, told = "-".join(("hunter2", "of", "ada")), dict[str, str]()
    metrics = TaskMetrics()
    metrics.on_broken = lambda name, error, _: told.update({name: traceback_text(error)})
    metrics.backlog = lambda: secret  # type: ignore[assignment]  # the mistake
    metrics.register("user", Assigned(secret), 1e-9)
    metrics.register("users", Assigned({"last": secret}), 1e-9)
    metrics.snapshot((), 0.0, final=True)
    assert "its value, a str, is not a number" in told["metric 'user'"]
    assert "its value, a str, of last is not a number" in told["metric 'users'"]
    assert "it returned a str, which is not a number of tuples" in told["backlog"]
    assert secret not in "".join(told.values())
