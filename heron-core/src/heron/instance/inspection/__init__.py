"""Hands questions of commands about the inside of the task to the installed inspector (`heron.spi.inspector`).

In: the requests of the topology manager, on the gateway thread. Out: one answer each. A question runs on a thread of
its own, which exists only meanwhile. The first one finds and imports the inspector; nothing is loaded before.

Reading order: `inspection` (the questions), `observation` (the thread).
"""
