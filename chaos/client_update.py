"""``python -m chaos.client_update NAME DOCUMENT``: an update by the Python client, in its own environment.

The document is JSON with the arguments of `Client.update`.
"""

from __future__ import annotations

import json
import sys

from heron.errors import HeronError
from heron_cli.client import connect

_TIMEOUT_S = 120.0


def main(name: str, document: str) -> None:
    """Update the topology. An error goes to stderr, as that of the command."""
    wanted = json.loads(document)
    parallelism = dict(wanted.pop("parallelism"))
    try:
        with connect("local") as client:
            client.update(name, parallelism, **wanted, timeout_s=_TIMEOUT_S)
    except HeronError as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
