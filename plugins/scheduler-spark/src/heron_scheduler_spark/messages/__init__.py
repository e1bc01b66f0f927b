"""What the supervisor, the driver and the tasks send each other. They know no process that sends them.

In: typed values. Out: frames and lines, and the values again on the other side. Each process uses it in the thread that
has the socket.

Reading order: `message_stream` (supervisor and driver), `task_messages` (driver and tasks), `log_transfer` (logs of a
container, from its worker to the machine that submitted).
"""
