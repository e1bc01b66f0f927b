"""The health manager: it decides about the actions of its policies, records its decisions, and carries them out.

In: observations of one topology, and the rounds of its policies. Out: records in the state manager, updates and
restarts. `manager_process` runs it in its main thread; each round of a policy has a thread, because it may hang.

Reading order: `manager` (the loop) with `topology_watch` (what it sees), `pace` (how often) and `policy_runner` (rounds
of policies); pure decisions: `agreement`, `pilot`, `safety`, `recovery`; what they cause: `acting`, `carrier`,
`record_book`; what people tell it: `record_commands`, `history_text`.
"""
