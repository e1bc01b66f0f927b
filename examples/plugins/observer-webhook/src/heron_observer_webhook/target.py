"""The web service, and the post of an event."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from heron.clock import wall_s
from heron.errors import ConfigError
from heron.spi.options import decode_options

__all__ = ["Target", "read_target"]


@dataclass(frozen=True, slots=True)
class Target:
    """A web service; `timeout_s` is below the five seconds that the engine gives an observer."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 3.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            msg = "url is neither http:// nor https://"
            raise ValueError(msg)
        if not 0 < self.timeout_s < 5:
            msg = f"timeout_s is {self.timeout_s:g} s, not above 0 and below 5 s"
            raise ValueError(msg)

    def post(self, event: str, **facts: str | float) -> None:
        """Post one event. The engine logs a network error under the observer's name."""
        body = json.dumps({"event": event, "at_s": wall_s(), "facts": facts}).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        request = urllib.request.Request(self.url, body, headers, method="POST")  # noqa: S310  # checked above
        with urllib.request.urlopen(request, timeout=self.timeout_s):  # noqa: S310  # checked above
            pass


def read_target(path: Path) -> Target:
    """Read the target from a JSON file.

    Raises:
        ConfigError: when the file cannot be read or a value is wrong.
    """
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        msg = f"{path}: {error}; write {{'url': 'https://…'}} into it, or uninstall heron-observer-webhook"
        raise ConfigError(msg) from error
    if not isinstance(found, dict):
        msg = f"{path}: not a JSON object; write {{'url': 'https://…'}} into it"
        raise ConfigError(msg)
    return decode_options(found, Target, str(path))
