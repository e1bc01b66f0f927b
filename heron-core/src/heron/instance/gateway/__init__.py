"""The gateway thread: owns every socket of an instance, and never calls user code.

In: frames of the stream manager, and control messages. Out: the flushes that credit allows. It starts and ends with the
process, and meets the task thread at the queues only.

Reading order: `gateway` (the thread and its links), `session` (frames and credit of one session), `lock_interval` (how
long it waits for the interpreter lock).
"""
