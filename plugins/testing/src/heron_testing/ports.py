"""Ports for servers that a test starts."""

from __future__ import annotations

import socket

__all__ = ["free_port"]


def free_port() -> int:
    """Return a port of the loopback address that no process uses.

    Another process may take it before the server does. A server that can choose its port itself gets the port 0.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
