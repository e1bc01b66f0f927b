"""Failures of authors' functions in one task: all are counted, the first ones are shown, and some are dead letters."""

from __future__ import annotations

import re
import reprlib
import traceback
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from heron.api import DeadLetter, FailedRecordError, api_constants
from heron_engine_spark.parcels import Counts, Failure, packed, unpacked
from heron_streamlet.failures import OperatorError, author_place

__all__ = ["Failures", "StoppedError", "unpacked_letter"]

_SHOWN_AT_MOST = 200  # as in a task of Heron
_LETTERS_BYTES = 64 * 1024**2  # the default of topology.dead.letters.bytes
_STOPPED = re.compile(r"^(?:[\w.]+\.)?StoppedError: (.*); at (.*)$", re.MULTILINE)


class StoppedError(OperatorError):
    """A record failed in a step that stops the pipeline. Spark passes only its text to the driver."""

    stops = True

    @classmethod
    def because_of(cls, error: OperatorError) -> Self:
        """The error of a worker, which ends its Spark task."""
        if isinstance(error, cls):
            return error
        place = error.place or author_place(error.__traceback__)
        found = cls(f"{' '.join(str(error).split())}; at {place}").with_traceback(error.__traceback__)
        found.part = error.part
        return found

    @staticmethod
    def found_in(text: str) -> OperatorError | None:
        """The error for the author, from what Spark says about a failed job; None if no step stopped it."""
        match = _STOPPED.search(text)
        if match is None:
            return None
        error = OperatorError(match[1])
        error.part, error.place, error.stops = match[1].partition(": ")[0], match[2], True
        error.add_note(text.partition("JVM stacktrace:")[0].rstrip())
        return error


class Failures:
    """The failed elements and windows of a task with this configuration of the pipeline.

    Attributes:
        stops: whether a failure without a rule stops the pipeline.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        most = config.get(api_constants.TOPOLOGY_DEAD_LETTERS_BYTES, _LETTERS_BYTES)
        self.stops = config.get(api_constants.TOPOLOGY_ON_ERROR) == "stop"
        self._letters_bytes = int(str(most))
        self.clear()

    def clear(self) -> None:
        """Begin to count again."""
        self._count = self._dropped = self._size_bytes = 0
        self._shown: dict[tuple[str, str], Failure] = {}
        self._letters: deque[bytes] = deque()

    def add(self, error: OperatorError) -> None:
        """Count a failure; the element is skipped, as on Heron. The first of each operator and line is shown.

        Raises:
            StoppedError: when the pipeline has to stop.
        """
        if FailedRecordError.ends_task(error, self.stops):
            raise StoppedError.because_of(error)
        self._count += error.count
        for letter in error.letters:
            self._keep(_packed_letter(letter))
        place = error.place or author_place(error.__traceback__) or str(error)
        if (error.part, place) not in self._shown and len(self._shown) < _SHOWN_AT_MOST:
            trace = "".join(traceback.format_exception(error)).rstrip()
            self._shown[error.part, place] = Failure(str(error), trace, error.part, place, error.stops)

    def counts(self, late: int) -> Counts:
        """What is reported to the driver."""
        return Counts(late, self._count, tuple(self._shown.values()), tuple(self._letters), self._dropped)

    def _keep(self, letter: bytes) -> None:
        self._letters.append(letter)
        self._size_bytes += len(letter)
        while self._size_bytes > self._letters_bytes:
            self._size_bytes -= len(self._letters.popleft())
            self._dropped += 1


def unpacked_letter(body: bytes) -> DeadLetter:
    """The letter of a worker, with its values as text if they do not load here."""
    letter: DeadLetter
    letter, values = unpacked(body)
    try:
        return replace(letter, values=unpacked(values))
    except Exception:  # of an author's class
        return letter


def _packed_letter(letter: DeadLetter) -> bytes:
    values = letter.values if isinstance(letter.values, list) else [letter.values]
    as_text = replace(letter, values=[_text(each) for each in values])
    try:
        body = packed(values)
    except Exception:  # pickling runs the code of the author's objects
        body = packed(as_text.values)
    return packed((as_text, body))


def _text(value: object) -> str:
    try:
        return reprlib.repr(value)
    except Exception:  # as above
        return f"a {type(value).__name__} whose repr fails"
