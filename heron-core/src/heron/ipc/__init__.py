"""The wire: frames, control messages, sockets, and the event loop of a process that owns sockets.

`frame`, `tracking` and `tracking_arrays` are the bytes of tuples and acks, `envelope` and `control_pb2` those of
control messages. `link` counts frames and credit. `socket`, `guarded_hub` and `watched_channel` wrap ZeroMQ, which no
module outside this package imports. `reactor` calls back when a socket is readable.
"""
