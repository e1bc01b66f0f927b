"""What a topology manager reads and writes: state nodes, checkpoint manifests, and the connections that get a plan.

The topology manager calls it to carry out instructions. Only `manifest_writer` has a thread.

Reading order: `lease` (who leads), `state_store` and `plan_record` (which fences former leaders), `containers` and
`plan_publisher` (a plan reaches the processes), `manifest_writer`, `topology_end`.
"""
