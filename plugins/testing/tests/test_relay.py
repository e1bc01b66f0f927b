"""The relay delays bytes, and keeps them complete and in order."""

from __future__ import annotations

import socket

from heron.clock import monotonic_s
from heron_testing.relay import Relay

DELAY_S = 0.05


def test_what_is_delayed_arrives_later_whole_and_in_order() -> None:
    """A delay does not limit throughput, so many chunks are in flight at once, and the end comes last."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay = Relay(server.getsockname(), delay_s=DELAY_S)
        try:
            began_s = monotonic_s()
            with socket.create_connection(relay.address) as client:
                there, _ = server.accept()
                with there:
                    for number in range(100):
                        client.sendall(b"%06d" % number)
                    client.shutdown(socket.SHUT_WR)
                    got = b"".join(iter(lambda: there.recv(4096), b""))
                    assert monotonic_s() - began_s >= DELAY_S
                    assert got == b"".join(b"%06d" % number for number in range(100))
        finally:
            relay.close()
