"""``python -m chaos.client_update NAME COMPONENT:TASKS …``: an update by the Python client, in its own environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from heron.errors import HeronError
from heron_cli.client import connect

_TIMEOUT_S = 120.0


def main(name: str, words: Sequence[str]) -> None:
    """Update the topology. An error goes to stderr, as that of the command."""
    parallelism = {component: int(tasks) for component, _, tasks in (word.rpartition(":") for word in words)}
    try:
        with connect("local") as client:
            client.update(name, parallelism, timeout_s=_TIMEOUT_S)
    except HeronError as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
