"""``python -P -m heron_testing.command_template FD``: a process that has imported `heron`, and forks it for tests.

The tests are at the other end of the socket FD (`heron_testing.sandbox_commands`).
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys

import click

import heron_testing.forked_command  # noqa: F401  # for the processes that it forks
from heron.driver_kit.fork_server_loop import serve
from heron_cli.catalog.drivers import Drivers
from heron_cli.main import heron

__all__: list[str] = []

_DRIVERS = {  # of the profile `local`
    "scheduler": "local",
    "statemgr": "localfs",
    "packing": "roundrobin",
    "uploader": "localfs",
    "metricsink": "file",
}


def _import_all() -> None:
    """All commands, and what most of them need; later collections leave that out, so that its pages stay shared."""
    with click.Context(heron) as context:
        for name in heron.list_commands(context):
            heron.get_command(context, name)
    for family, name in _DRIVERS.items():
        Drivers().driver(family, name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import_all()
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.send(b"ready")
    serve(channel, os.getppid(), signal.SIGKILL, {})
