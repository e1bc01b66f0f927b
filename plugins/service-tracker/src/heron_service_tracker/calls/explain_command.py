"""Asks ``heron explain``, a command that another distribution adds, about a topology: its JSON is the interface.

It is a child process, because it observes for some seconds, and brings policies that the tracker does not need.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import msgspec

from heron.spi.typed_values import decode_json
from heron_cli.command_entries import has_command
from heron_service_tracker.request_errors import NotYetKnownError

__all__ = ["ExplainCommand", "ExplainedProblem", "ExplanationAnswer", "explain_installed"]

_HERON = "from heron_cli.main import main; main()"
_MOST_S = 50.0  # it observes for at most 15 s, and waits at most 10 s for each of three answers


class ExplainedProblem(msgspec.Struct, frozen=True):
    """Something that suffers, since when (wall-clock seconds), why, which other causes are excluded, and what to do.

    If `since_s` is not known, `observed_s` says for how long it was observed; 0 if it was not.

    `subject` is the component, the task (``count/3``), the process or the container (``container 2``); "" for the
    topology. A `gravity` of 0 says that nothing suffers, and that something can be spared.
    """

    what: str
    why: tuple[str, ...]
    subject: str = ""
    gravity: float = 1.0
    since_s: float | None = None
    observed_s: float = 0.0
    ruled_out: tuple[str, ...] = ()
    action: str = ""
    command: str = ""


class ExplanationAnswer(msgspec.Struct, frozen=True):
    """What `heron explain` says: the problems, the gravest first; `summary` where there are none.

    `at_s` is its time in wall-clock seconds, and `unknown` limits the answer.
    """

    at_s: float
    summary: tuple[str, ...] = ()
    problems: tuple[ExplainedProblem, ...] = ()
    unknown: tuple[str, ...] = ()


def explain_installed() -> bool:
    """Return whether a distribution with the command is installed."""
    return has_command("explain")


class ExplainCommand:
    """The command for the clusters of a tracker; `options_of` gives the options of a profile."""

    def __init__(self, options_of: Callable[[str], Sequence[str]]) -> None:
        self._options_of = options_of

    def answer(self, cluster: str, topology: str) -> ExplanationAnswer:
        """Run the command, for 7 to 17 seconds.

        Raises:
            NotYetKnownError: when it is not installed, does not end in time, or fails; the message has its last line.
        """
        if not explain_installed():
            msg = "`heron explain` is not installed: `pip install heron-health-manager`"
            raise NotYetKnownError(msg)
        words = [sys.executable, "-P", "-c", _HERON, "explain", "--json", *self._options_of(cluster), "--", topology]
        try:
            ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_MOST_S, check=False)
        except subprocess.TimeoutExpired as error:
            msg = f"`heron explain {topology}` has not ended within {_MOST_S:g} s"
            raise NotYetKnownError(msg) from error
        if ended.returncode:
            last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise NotYetKnownError(last.removeprefix("heron: error: ") or f"it ended with {ended.returncode}")
        try:
            return decode_json(ended.stdout, ExplanationAnswer)
        except msgspec.MsgspecError as error:
            msg = f"`heron explain` is of another version: {error}"
            raise NotYetKnownError(msg) from error
