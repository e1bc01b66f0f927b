"""What happens to a failed root where `topology.replay.attempts` is set; decision 060.

In: the roots of a flush with their values, their outcomes, and why a task downstream failed them. Out: the roots that
are to be emitted again, and what is given up. The spout's side (`heron.instance.spout_replays`) calls it, from the task
thread; a bolt only makes causes. Without the key, only `replay_policy` is loaded. In reading order: `replay_policy`,
`kept_roots`, `replayer`, `failure_cause`, `pickled_letter`, `letter_store`. A step of a pipeline that makes a dead
letter loads the last two also without the key; decision 064. Effectively once a bolt keeps the tuples that it failed,
in `heron.instance.state.held_letters`; decision 065. The file of dead letters is `heron.kernel.dead_letter_file`.
"""
