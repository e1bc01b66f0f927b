"""One spout or bolt task: reads segments from its stream manager, runs user code on them, and writes segments back.

Two threads: the gateway owns the sockets, the task thread runs the author's component. They exchange data through the
queues only. The rooms, from the one that knows all others to those that know none:

- `main`, then `spout_runner` and `bolt_runner` on `runner`: the loops that call user code; `shedding_spout` and
  `sampled_bolt`: the same in a topology in which a spout sheds tuples; `batch_processor`: the calls
  for a batch; `bolt_output`: what they emitted and acked, until it is flushed; `task`: what a runner uses;
  `task_telemetry`: what it tells others; `own_replays`, `spout_replays` and `bolt_letters`: what becomes of failed
  tuples, without and with replays by the engine; `pacing` and `garbage`: when it flushes, and when Python looks for
  cycles
- `gateway`: the sockets
- `inspection`: answers commands that look inside the task
- `input`: from received segments to calls of the author's methods, and the acks of what was received
- `output`: from emitted rows to segments
- `acks`: what tuples have roots, and which roots are in flight
- `replay`: which failed roots are emitted again, and which become dead letters
- `user`: the author's code, its context and its failures
- `state`, `codec`, `queues`, `metrics`, `stacks`: know no other room
"""
