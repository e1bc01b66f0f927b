"""The driver's task stores the letters of a batch before the thread of the job completes the batch."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Any

from heron.errors import CheckpointError
from heron_engine_spark.driver_spout import BatchDriver
from heron_engine_spark.failures import Failures, StoppedError
from heron_streamlet.failures import OperatorError, Step, failed_at

STEP = Step("divide", 3, "clicks.py:4", "dead_letter")


class Reporting(BatchDriver):
    """A driver without Spark, of which the job waits for its letters."""

    def __init__(self) -> None:
        self.reported: list[Any] = []
        self.letters, self.failures, self.batches = deque(), deque(), deque()
        self.stored, self.over = threading.Event(), threading.Event()
        self.closed, self.stopping = threading.Event(), threading.Event()
        self.ended, self.thread, self.error = False, threading.Thread(), None
        self.session, self.scratch = None, Path("there-is-no-such-folder")

    def report_error(self, error: Exception) -> None:
        """Keep it."""
        self.reported.append(error)


def test_the_job_waits_until_its_letters_are_stored() -> None:
    """They would be lost if the driver died behind a batch that is complete."""
    failures = Failures({})
    for value in (1, lambda: 2):
        failures.add(failed_at(STEP, ValueError("no"), value))
    driver = Reporting()
    job = threading.Thread(target=driver.keep, args=(failures.counts(0).letters,), daemon=True)
    job.start()
    while job.is_alive():
        driver.next_tuple()
    (error,) = driver.reported
    assert error.stops is False
    assert [each.step for each in error.letters] == ["divide", "divide"]
    assert error.letters[0].values == [1]


def test_a_task_that_closes_ends_the_wait_and_the_batch_is_not_complete() -> None:
    """While a topology is paused, `next_tuple` is not called; its end must not wait for it."""
    driver, raised = Reporting(), []

    def work() -> None:
        try:
            driver.keep([b"letter"])
        except CheckpointError as error:
            raised.append(str(error))

    job = threading.Thread(target=work, daemon=True)
    job.start()
    driver.close()
    job.join(10)
    assert raised == ["1 dead letters are not stored, because the task ends; their batch is repeated"]


def test_letters_that_are_stored_while_the_task_closes_are_stored() -> None:
    """The wait may run out just before: the batch must not be repeated, or its letters would be stored twice."""

    class StoredLate(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if self.is_set():
                return True
            driver.next_tuple()
            driver.closed.set()
            return False

    driver = Reporting()
    driver.stored = StoredLate()
    failures = Failures({})
    failures.add(failed_at(STEP, ValueError("no"), 1))
    driver.keep(failures.counts(0).letters)
    assert len(driver.reported) == 1


def test_the_newest_letters_of_a_task_stay() -> None:
    """Within `topology.dead.letters.bytes`; the others are counted."""
    failures = Failures({"topology.dead.letters.bytes": 3_000})
    for value in range(100):
        failures.add(failed_at(STEP, ValueError("no"), value))
    counts = failures.counts(0)
    assert counts.failed == 100
    assert 0 < len(counts.letters) < 100
    assert counts.dropped == 100 - len(counts.letters)


def test_a_step_that_stops_is_found_in_the_text_of_spark() -> None:
    """With its message on one line, and the author's place."""
    try:
        raise StoppedError.because_of(OperatorError.of(STEP, "ValueError: two\nlines", ()))
    except StoppedError as error:
        text = f"PythonException: Traceback\nheron_engine_spark.failures.StoppedError: {error}\n\nJVM stacktrace:\nmore"
    found = StoppedError.found_in(text)
    assert found is not None
    assert found.stops is True
    assert str(found) == "operator 'divide' (clicks.py:4): ValueError: two lines"
    assert StoppedError.found_in("ValueError: no") is None
