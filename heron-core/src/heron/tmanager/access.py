"""Which messages are for whom: a key opens the topology manager's socket, and says what may be said there. Pure."""

from __future__ import annotations

from heron.errors import HeronError
from heron.ipc.keys import Speaker

__all__ = ["check_speaker"]

_QUESTIONS = frozenset({"status_request", "metrics_request"})
_COMMANDS = frozenset({"change_state"})


def check_speaker(speaker: Speaker, body: str) -> None:
    """Lets members say anything, the control key change and ask, a read-only key ask.

    Raises:
        HeronError: when this message is not for this key.
    """
    if speaker is Speaker.MEMBER or body in _QUESTIONS:
        return
    if body not in _COMMANDS:
        msg = f"{body} is only for the topology's own processes, not for its {speaker.value} key"
        raise HeronError(msg)
    if speaker is not Speaker.CONTROL:
        msg = f"{body} is not for the topology's read-only key; use its control key"
        raise HeronError(msg)
