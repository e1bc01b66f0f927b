"""Entry point of an executor: ``python -m heron.executor.main SPECFILE``.

The fork server is forked before anything else. What only the executor needs is imported afterwards, so the processes of
the container have the modules that a new interpreter would have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from heron.driver_kit.loading import load_object
from heron.executor.fork_server import ForkServer, start_fork_server

if __name__ == "__main__":
    server = start_fork_server()
    cast("Callable[[ForkServer | None], None]", load_object("heron.executor.container_run:run_container"))(server)
