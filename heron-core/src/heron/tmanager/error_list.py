"""The errors that people are shown: each text once, the newest kept. Pure."""

from __future__ import annotations

__all__ = ["ErrorList"]

_KEPT = 50  # more than anybody reads; the logs have all
_LENGTH = 4000  # characters of one


class ErrorList:
    """Distinct texts, oldest first."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def add(self, text: str) -> bool:
        """Whether the text is new."""
        text = text[:_LENGTH]
        if not text or text in self._texts:
            return False
        self._texts[text] = None
        if len(self._texts) > _KEPT:
            del self._texts[next(iter(self._texts))]
        return True

    def texts(self) -> tuple[str, ...]:
        """All that are kept."""
        return tuple(self._texts)
