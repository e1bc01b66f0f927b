"""Links between stream managers without encryption, to measure its cost. The engine has no such setting.

Python imports a module of this name at the start of each interpreter. Only the unencrypted runs have this folder on
their path.
"""

from __future__ import annotations

import sys

if "heron.stmgr.main" in sys.orig_argv:
    import zmq

    from heron.ipc import socket as sockets
    from heron.ipc.guarded_hub import GuardedHub
    from heron.ipc.keys import ClientKeys, ServerKeys
    from heron.ipc.socket import Channel, SocketContext

    _encrypted = SocketContext.client_of

    def _server(self: SocketContext, kind: int) -> zmq.Socket[bytes]:
        return self._open(kind)

    def _bind(self: GuardedHub, keys: ServerKeys) -> str:
        self.raw.bind(self._listens_at)
        return self.raw.getsockopt_string(zmq.LAST_ENDPOINT, "ascii").rstrip("\0")

    def _client_of(
        self: SocketContext,
        endpoint: str,
        identity: bytes = b"",
        *,
        eager: bool = True,
        keys: ClientKeys | None = None,
    ) -> Channel:
        if not identity or keys is None:  # only the link of a peer has both
            return _encrypted(self, endpoint, identity, eager=eager, keys=keys)
        socket = self._open(zmq.DEALER)
        socket.setsockopt(zmq.IDENTITY, identity)
        sockets._attempt(socket.connect, endpoint, "connect to")
        return Channel(socket)

    SocketContext.server = _server  # type: ignore[method-assign]
    GuardedHub._bind = _bind  # type: ignore[method-assign]
    SocketContext.client_of = _client_of  # type: ignore[method-assign]
