"""Encrypted links for drivers whose parts run on several machines: keys, a hub that listens, channels that connect.

These are the parts of `heron.ipc` that a driver may use. `GuardedHub` and `open_guarded_hub` listen, and refuse callers
without a known key. `open_watched_channel` connects and reports a broken connection. `Reactor` polls sockets and
`Wakeup` wakes it from another thread.
"""

from __future__ import annotations

from heron.ipc.guarded_hub import GuardedHub, open_guarded_hub
from heron.ipc.keys import ClientKeys, ClientKind, TopologyKeys, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.ipc.wakeup import Wakeup
from heron.ipc.watched_channel import WatchedChannel, open_watched_channel
from heron.state_nodes.topology_keys import decode_keys, encode_keys

__all__ = [
    "ClientKeys",
    "ClientKind",
    "GuardedHub",
    "Reactor",
    "SocketContext",
    "TopologyKeys",
    "Wakeup",
    "WatchedChannel",
    "decode_keys",
    "encode_keys",
    "new_keys",
    "open_guarded_hub",
    "open_watched_channel",
]

Speaker = ClientKind  # the former name, for drivers of the present contracts
