"""A thread that asks the inspector one question, because a command has asked. There is none while nobody asks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import msgspec

from heron.author_text import named_error
from heron.clock import monotonic_s
from heron.errors import PluginError
from heron.ipc import control_pb2 as pb

__all__ = ["Observation"]

_STOP_S = 2.0  # the contract gives a question 1 s to end; the process does not wait longer for a plugin

_log = logging.getLogger(__name__)


class Observation:
    """One question; begins at once. `what` is what is being done to the task: it follows ``task 7 is being``.

    It ends with the encoded answer of the inspector, with a refusal if there is no inspector, or with a failure.
    """

    def __init__(self, name: str, what: str, seconds: float, ask: Callable[[threading.Event], object]) -> None:
        self.what = what
        self._document = b""
        self._refusal = self._failure = ""
        self._ask = ask
        self._stop = threading.Event()
        self._ends_s = monotonic_s() + seconds
        self._thread = threading.Thread(target=self._run, name=f"inspection-{name}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # the limit of threads; a question must not end the gateway
            self._fail(error)

    def left_s(self) -> float:
        """The seconds until it is complete, at least."""
        return max(0.0, self._ends_s - monotonic_s())

    def is_alive(self) -> bool:
        """Whether it is under way."""
        return self._thread.is_alive()

    def answer(self, number: int) -> pb.TaskAnswer:
        """What is sent when it has ended; `number` is that of the request."""
        if self._refusal:
            return pb.TaskAnswer(request_id=number, refusal=self._refusal)
        if self._failure:
            return pb.TaskAnswer(request_id=number, failure=self._failure)
        return pb.TaskAnswer(request_id=number, document=self._document)

    def stop(self) -> None:
        """Ends it early, and waits for its thread."""
        self._stop.set()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        try:
            self._document = msgspec.json.encode(self._ask(self._stop))
        except PluginError as error:
            self._refusal = str(error)
        except (Exception, SystemExit) as error:  # a question must not end the process of the task
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        _log.error("a question about this task cannot be answered", exc_info=error)
        self._failure = f"looking into the task raised {named_error(error)}; see its log"
