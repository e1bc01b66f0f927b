"""From measurements to causes, and from causes to actions. Pure.

In: measurements. Out: symptoms (a measurement out of its range), diagnoses (the cause of symptoms) with evidence, and
actions. A round of a policy calls the parts in this order, in the thread of the round.

Reading order: `policy_round` (the order itself) with `doubts` (measurements that contradict themselves) and `diagnosed`
(each diagnosis is made once); `thresholds` and `detectors` (symptoms); `task_causes`, `container_causes` and `tuning`
(causes), and `diagnosers`, their list; `resolvers` (actions); `health_text` (a round as text).
"""
