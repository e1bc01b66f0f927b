"""What a request asks of a topology itself: questions, observations of tasks, and actions.

In: a place, and what to ask. Out: what the topology answered, or why it did not. `paths` calls it; each call runs in a
thread with its own client, and the number of threads is bounded.

Reading order: `questions` (stacks, logs, traces, an explanation) with `shared_answers` (one question for many requests)
and `explain_command` (`heron explain` as a child process); `task_observers` (profile, memory and tuples of a task);
`actions` (changes of a topology) with `action_items` (what a person may ask) and `audit_file` (who changed what);
`daemon_thread` (a thread that the end of the tracker does not wait for).
"""
