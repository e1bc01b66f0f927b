"""One spout or bolt task: reads segments from its stream manager, runs user code on them, and writes segments back.

Two threads: the gateway owns the sockets (`gateway`, `session`), the task thread runs the author's component
(`spout_runner`, `bolt_runner`). They exchange data through queues only (`data_queue`; design D4).
"""
